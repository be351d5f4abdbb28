"""What the screen finds in texts and conversations, and how well: the measuring half of the recipe `screen`.

`Screen` joins the network and the surface as the encoder process does, so figures here are figures there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from rubric import texts_to_screen
from rubric.serve.bundle import Thresholds
from rubric.serve.surface import CLASSES, Surface, mix
from rubric.serve.texts import screening_windows
from training.data.screen_lines import SpeakerDirection, SuiteItem
from training.recipes.screen_fit import read_windows
from training.recipes.screen_net import ScreenNet

Findings = NDArray[np.float32]  # [texts, 2]: probability of any crisis, of the level high


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """Both opinions and how they are mixed."""

    net: ScreenNet  # merged
    surface: Surface
    weights: tuple[float, float]  # network, surface
    tokenizer: Tokenizer

    def read(self, texts: Sequence[str], *, direction: SpeakerDirection) -> Findings:
        """Per text the worst window, as the encoder process would find it."""
        offset = 0 if direction == "visitor" else CLASSES // 2
        cut = [
            (number, window) for number, text in enumerate(texts) for window in screening_windows(text, self.tokenizer)
        ]
        networks = read_windows(self.net, [window for _, window in cut])
        found = np.zeros((len(texts), 2), dtype=np.float32)
        for (number, window), network in zip(cut, networks, strict=True):
            mixed = mix(network, self.surface.probabilities(window.text), weights=self.weights)
            found[number] = np.maximum(found[number], (1 - mixed[offset], mixed[offset + 2]))
        return found

    def read_items(self, items: Sequence[SuiteItem]) -> Findings:
        """The worst reading of each conversation, every turn screened alone and joined: [items, 2]."""
        texts = [
            (number, text)
            for number, item in enumerate(items)
            for turn in range(len(item.turns))
            for text in texts_to_screen(item.turns[: turn + 1])
        ]
        found = self.read([text for _, text in texts], direction="visitor")
        worst = np.zeros((len(items), 2), dtype=np.float32)
        for (number, _), levels in zip(texts, found, strict=True):
            worst[number] = np.maximum(worst[number], levels)
        return worst


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """How a set of texts was told apart at given thresholds."""

    crisis: int
    crisis_found: int  # at watch or high
    high_found: int  # of the crisis texts, at high
    harmless: int
    harmless_passed: int
    harmless_high: int  # the costly mistake: a harmless text without a model's answer

    def as_facts(self) -> dict[str, float | int]:
        """Counts and the two shares, for one JSON line."""
        shares = {
            "recall": round(self.crisis_found / max(1, self.crisis), 4),
            "specificity": round(self.harmless_passed / max(1, self.harmless), 4),
        }
        return {**shares, **dataclasses.asdict(self)}


def figures(found: Findings, is_crisis: NDArray[np.bool_], *, thresholds: Thresholds) -> Figures:
    """Count both kinds of mistakes."""
    is_high = found[:, 1] >= thresholds.high
    is_shown = (found[:, 0] >= thresholds.watch) | is_high
    return Figures(
        crisis=int(is_crisis.sum()),
        crisis_found=int((is_shown & is_crisis).sum()),
        high_found=int((is_high & is_crisis).sum()),
        harmless=int((~is_crisis).sum()),
        harmless_passed=int((~is_shown & ~is_crisis).sum()),
        harmless_high=int((is_high & ~is_crisis).sum()),
    )


def quantiles(found: Findings, is_crisis: NDArray[np.bool_]) -> dict[str, dict[str, float]]:
    """Where thresholds would lie for a recall, for a specificity, and for a share of harmless texts at high."""
    crisis, harmless = found[is_crisis], found[~is_crisis]
    return {
        "watch_for_recall": {str(q): _quantile(crisis[:, 0], 1 - q) for q in (0.99, 0.98, 0.97, 0.95)},
        "watch_for_specificity": {str(q): _quantile(harmless[:, 0], q) for q in (0.85, 0.9, 0.95)},
        "high_for_harmless_share": {str(q): _quantile(harmless[:, 1], 1 - q) for q in (0.03, 0.02, 0.01)},
    }


def _quantile(values: NDArray[np.float32], share: float) -> float:
    return round(float(np.quantile(values, share)), 3)
