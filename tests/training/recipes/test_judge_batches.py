"""Criteria graded side by side get what each gets alone; products of half width are for processors that have them."""

import pytest
import torch

from training.recipes.half_products import half_products
from training.recipes.judge_batches import grade_asked
from training.recipes.judge_net import LEVELS, STATE_WIDTH, SUMMARY_WIDTH, JudgeNet, Read
from training.recipes.minilm import load_minilm, package_folder


@torch.no_grad()
def test_each_reading_gets_the_logits_of_its_own_criteria_in_the_order_asked() -> None:
    torch.manual_seed(0)
    net = JudgeNet(load_minilm(package_folder()), rank=0, first_layer=6).eval()
    states, summary = torch.randn(3, 9, STATE_WIDTH), torch.randn(3, SUMMARY_WIDTH)
    read = Read(states, summary, mechanisms=summary, genuine=summary)
    reply_mask = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0, 0]])
    masks = (reply_mask, torch.tensor([[1] * 9, [1] * 7 + [0] * 2, [1] * 4 + [0] * 5]) - reply_mask)
    criteria, mask = (
        torch.randn(4, 5, 2 * STATE_WIDTH),
        torch.tensor([[1] * 5, [1] * 3 + [0] * 2, [1] * 5, [1] * 2 + [0] * 3]),
    )
    asked = [(0, 2), (2, 1), (0, 0), (0, 3), (2, 2)]
    together = grade_asked(net, read, masks, (criteria, mask), asked)
    assert together.shape == (len(asked), LEVELS)
    for (reading, criterion), logits in zip(asked, together, strict=True):
        one, its = slice(reading, reading + 1), slice(criterion, criterion + 1)
        alone = net.grade(
            Read(states[one], summary[one], mechanisms=summary, genuine=summary),
            (masks[0][one], masks[1][one]),
            criteria[its, None],
            mask[its, None],
        )
        assert logits == pytest.approx(alone[0, 0], abs=1e-4)


@pytest.mark.parametrize("has_them", [True, False])
def test_products_are_halved_only_where_the_processor_has_such(monkeypatch: pytest.MonkeyPatch, has_them: bool) -> None:
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: has_them)
    halved = torch.bfloat16 if has_them else torch.float32
    for wanted, kind in ((True, halved), (False, torch.float32)):
        with half_products(wanted=wanted):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is kind
