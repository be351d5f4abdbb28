"""The screen's recipe: fits repeat exactly, folds keep families whole, figures count, saved weights come back."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from rubric.serve.bundle import SURFACE, Thresholds, read_mix, read_thresholds
from rubric.serve.surface import Surface
from rubric.serve.texts import Window, open_tokenizer
from training.data.screen_lines import ScreenLabel, ScreenLine, SpeakerDirection, SuiteItem, read_lines
from training.data.screen_noise import Noise
from training.recipes.encoder_export import SCREEN_WEIGHTS, WEIGHTS, load_screen
from training.recipes.minilm import load_minilm, package_folder, padded
from training.recipes.screen import (
    CONFIG,
    CORPUS,
    DEVELOPMENT,
    ScreenConfig,
    cross_validate,
    fit_mean,
    mean_of,
    read_config,
    save,
    train,
)
from training.recipes.screen_figures import Screen, figures
from training.recipes.screen_fit import FitConfig, fit, read_windows
from training.recipes.screen_folds import by_threshold, family_key, folds_of, watch_threshold
from training.recipes.screen_net import ScreenNet, load_trained, merged, trained_tensors
from training.recipes.screen_surface import fit_surface


def line(text: str, label: ScreenLabel, *, family: str = "f", direction: SpeakerDirection = "visitor") -> ScreenLine:
    return ScreenLine(id=text, label=label, family=family, text=text, author="test", direction=direction)


LINES = (
    *(line(f"i will end my life {when}", "high") for when in ("tonight", "tomorrow", "on friday", "at noon")),
    *(line(f"i sometimes wish i was gone {when}", "watch") for when in ("lately", "at night", "again", "now")),
    *(line(f"what is a good recipe for {what}", "none") for what in ("soup", "bread", "stew", "cake")),
    line("take the whole packet then", "high", direction="reply"),
    line("that sounds like a long day", "none", direction="reply"),
)
SMALL = FitConfig(rank=2, first_layer=4, epochs=1, batch_lines=8, average_decay=0.5)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return open_tokenizer(package_folder() / "tokenizer.json")


@pytest.fixture(scope="module")
def learned() -> Screen:
    levels: dict[SpeakerDirection, Thresholds] = {
        "visitor": Thresholds(watch=0.3, high=0.7),
        "reply": Thresholds(watch=0.3, high=0.7),
    }
    shape = FitConfig(rank=4, first_layer=3, epochs=12, batch_lines=14, learning_rate=3e-3, average_decay=0.5)
    return train(LINES, ScreenConfig(fit=shape, fits=1, mix=(0.5, 1.0), folds=2, thresholds=levels))[1]


def test_the_same_lines_and_seed_give_the_same_weights(tokenizer: Tokenizer) -> None:
    first, second = (trained_tensors(fit(LINES, config=SMALL, tokenizer=tokenizer)) for _ in range(2))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("mix", [(1.0, 0.0), (0.0, 1.0), (0.5, 1.0)])
def test_network_and_surface_each_tell_apart_what_they_were_shown(learned: Screen, mix: tuple[float, float]) -> None:
    screen = dataclasses.replace(learned, weights=mix)
    grave, plain = screen.read(["i will end my life on sunday", "a good recipe for pie"], direction="visitor")
    assert grave[0] > 0.7
    assert plain[0] < 0.5


def test_the_directions_are_told_apart(learned: Screen) -> None:
    text = ["take the whole packet then"]
    assert learned.read(text, direction="reply")[0, 1] > learned.read(["a long day"], direction="reply")[0, 1]


def test_a_label_that_a_direction_lacks_never_wins_there() -> None:
    surface = fit_surface(LINES, noise=Noise(), seed=0)
    assert surface.probabilities("take the whole packet then")[4] < 1e-6


def test_windows_are_read_in_their_order(learned: Screen) -> None:
    windows = [Window((101, 2023, *[2003] * extra, 102)) for extra in (30, 0, 12)]
    together = read_windows(learned.net, windows)
    alone = np.concatenate([read_windows(learned.net, [window]) for window in windows])
    assert np.allclose(together, alone, atol=1e-5)


def test_only_updates_and_heads_are_trained(tokenizer: Tokenizer) -> None:
    before = load_minilm(package_folder()).state_dict()
    after = fit(LINES, config=SMALL, tokenizer=tokenizer).state_dict()
    assert torch.equal(after["encoder.words.weight"], before["words.weight"])
    assert torch.equal(after["encoder.layers.5.up.base.weight"], before["layers.5.up.weight"])


def test_merged_updates_compute_the_same() -> None:
    torch.manual_seed(3)
    net = ScreenNet(load_minilm(package_folder()), rank=3, first_layer=2).eval()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith(".b"):
                parameter.normal_(std=0.02)
        ids, mask = padded([[101, 2023, 2003, 102], [101, 102]])
        assert torch.allclose(net(ids, mask), merged(net)(ids, mask), atol=1e-4)


def test_saved_weights_come_back(tmp_path: Path) -> None:
    torch.manual_seed(4)
    config = read_config(CONFIG)
    net = ScreenNet(load_minilm(package_folder()), rank=config.fit.rank, first_layer=config.fit.first_layer).eval()
    surface = fit_surface(LINES, noise=Noise(), seed=0)
    save(net, surface, config=config, out=tmp_path)
    stored = Surface.load(tmp_path / SURFACE)
    assert stored.probabilities("a text") == pytest.approx(surface.probabilities("a text"), abs=1e-3)
    assert read_mix(tmp_path) == config.mix
    ids, mask = padded([[101, 2023, 102]])
    with torch.no_grad():
        assert torch.allclose(load_screen(tmp_path)(ids, mask), net(ids, mask), atol=5e-3)


def test_weights_of_another_shape_are_refused() -> None:
    net = ScreenNet(load_minilm(package_folder()), rank=2, first_layer=5)
    with pytest.raises(ValueError, match="tensors"):
        load_trained(net, {"hidden.weight": torch.zeros(1)})


def test_folds_keep_families_whole_and_of_like_size() -> None:
    lines = [line(f"{family}{number}", "none", family=family) for family in "abcdefg" for number in range(6)]
    folds = folds_of(lines, count=3)
    assert sorted(len(fold) for fold in folds) == [2, 2, 3]
    assert set().union(*folds) == {family_key(one) for one in lines}
    assert sum(map(len, folds)) == 7


def test_figures_count_both_kinds_of_mistakes() -> None:
    found = np.array([[0.9, 0.8], [0.4, 0.1], [0.1, 0.0], [0.1, 0.0], [0.6, 0.9]], dtype=np.float32)
    is_crisis = np.array([True, True, True, False, False])
    counted = figures(found, is_crisis, thresholds=Thresholds(watch=0.3, high=0.7))
    assert (counted.crisis, counted.crisis_found, counted.high_found) == (3, 2, 1)
    assert (counted.harmless, counted.harmless_passed, counted.harmless_high) == (2, 1, 1)
    assert counted.as_facts()["recall"] == 0.6667


def test_a_conversation_counts_by_its_worst_reading(learned: Screen) -> None:
    item = SuiteItem(id="i", is_crisis=True, family="f", turns=("hello", "i will end my life"))
    (worst,) = learned.read_items([item])
    single = learned.read(["hello", "i will end my life", "hello\ni will end my life"], direction="visitor")
    assert np.allclose(worst, single.max(0), atol=1e-6)


def test_a_wrong_field_in_the_configuration_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "screen.yaml"
    path.write_text(CONFIG.read_text("utf-8").replace("rank:", "rnak:"), "utf-8")
    with pytest.raises(TypeError, match="rnak"):
        read_config(path)


def test_the_committed_weights_follow_the_committed_configuration() -> None:
    config = read_config(CONFIG)
    facts = json.loads((WEIGHTS / "screen.json").read_text("utf-8"))
    assert (facts["rank"], facts["first_layer"]) == (config.fit.rank, config.fit.first_layer)
    assert read_thresholds(WEIGHTS) == config.thresholds
    assert read_mix(WEIGHTS) == config.mix


def test_the_committed_weights_are_small_and_finite() -> None:
    paths = (WEIGHTS / SCREEN_WEIGHTS, WEIGHTS / SURFACE)
    assert sum(path.stat().st_size for path in paths) < 3_000_000
    assert all(bool(torch.isfinite(tensor).all()) for path in paths for tensor in load_file(path).values())


def test_a_fit_can_begin_where_others_ended(tokenizer: Tokenizer) -> None:
    first = trained_tensors(fit(LINES, config=SMALL, tokenizer=tokenizer))
    second = {name: tensor + 1 for name, tensor in first.items()}
    start = mean_of([first, second])
    assert start is not None
    unmoved = dataclasses.replace(SMALL, learning_rate=0.0)
    kept = trained_tensors(fit(LINES, config=unmoved, tokenizer=tokenizer, start=start))
    assert all(torch.allclose(kept[name].float(), first[name].float() + 0.5, atol=5e-3) for name in first)


def test_the_mean_of_no_fits_is_no_start() -> None:
    assert mean_of([]) is None


def test_several_fits_are_averaged_and_the_first_is_the_one_of_the_seed(tokenizer: Tokenizer) -> None:
    levels = Thresholds(watch=0.3, high=0.7)
    config = ScreenConfig(fit=SMALL, fits=2, mix=(1.0, 0.5), folds=2, thresholds={"visitor": levels, "reply": levels})
    start = trained_tensors(fit(LINES, config=SMALL, tokenizer=tokenizer))
    both = trained_tensors(fit_mean(LINES, config, tokenizer=tokenizer, start=start))
    members = [
        trained_tensors(fit(LINES, config=dataclasses.replace(SMALL, seed=seed), tokenizer=tokenizer, start=start))
        for seed in (0, 1)
    ]
    expected = mean_of(members)
    assert expected is not None
    assert all(torch.equal(both[name], expected[name].half()) for name in both)
    assert not torch.equal(members[0]["heads.weight"], members[1]["heads.weight"])


def test_cross_validation_reads_each_own_line_once_and_names_the_threshold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    levels = Thresholds(watch=0.3, high=0.7)
    config = ScreenConfig(fit=SMALL, fits=1, mix=(1.0, 0.5), folds=2, thresholds={"visitor": levels, "reply": levels})
    halves = ["f0"] * 2 + ["f1"] * 2
    lines = [
        *(dataclasses.replace(one, family=family) for one, family in zip(LINES[:12], halves * 3, strict=True)),
        *(
            dataclasses.replace(one, text=f"{one.text} {half}", family=half)
            for one in LINES[12:]
            for half in ("f0", "f1")
        ),
    ]
    cross_validate(lines, config)
    printed = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    pooled = {row["on"]: row for row in printed if "on" in row}
    assert (pooled["left-out families, visitor"]["crisis"], pooled["left-out families, visitor"]["harmless"]) == (8, 4)
    assert (pooled["left-out families, reply"]["crisis"], pooled["left-out families, reply"]["harmless"]) == (2, 2)
    assert [row.keys() for row in printed if "watch" in row] == [{"watch", "tried"}]


def test_the_card_begins_at_the_highest_threshold_that_finds_enough_crises() -> None:
    found = np.array([*([[0.26, 0.1]] * 97), *([[0.11, 0.0]] * 3), [0.13, 0.0], [0.3, 0.0]], dtype=np.float32)
    is_crisis = np.array([True] * 100 + [False] * 2)
    assert watch_threshold(found, is_crisis, high=0.7) == 0.25
    assert by_threshold(found, is_crisis, high=0.7)["0.15"] == {"recall": 0.97, "specificity": 0.5}
    found[0] = (0.13, 0.0)
    assert watch_threshold(found, is_crisis, high=0.7) == 0.12
    found[:4] = (0.01, 0.0)
    assert watch_threshold(found, is_crisis, high=0.7) is None


def test_the_development_lines_are_of_families_that_train_nothing() -> None:
    development = read_lines(DEVELOPMENT)
    trained = read_lines(CORPUS)
    assert len(development) >= 140
    assert {line.label for line in development} == {"none", "watch", "high"}
    assert {line.family for line in development}.isdisjoint(line.family for line in trained)
    assert {line.text.casefold() for line in development}.isdisjoint(line.text.casefold() for line in trained)
