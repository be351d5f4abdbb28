"""The encoder judge as a torch network: the encoder with low-rank updates, late interaction of criterion and reply.

Three parts, each exported as a graph of its own and run without padding, one item at a time: `ReadGraph` reads a
context with its reply once, `CriterionGraph` a criterion once (the encoder process keeps it), `LevelGraph` brings one
criterion and one reading together. The recipe `judge` trains them as one network and saves only what it trained.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from rubric.score import LEVELS as SCORE_LEVELS
from rubric.serve.readings import SURFACE_NAMES
from training.recipes.low_rank import add_updates, load_tensors, merge_updates
from training.recipes.minilm import LAYERS, WIDTH, MiniLm, mean_pool

STATE_WIDTH: Final = 128  # of a projected token
SUMMARY_WIDTH: Final = 128  # of what is known about a reply as a whole
LEVELS: Final = len(SCORE_LEVELS)  # 0, .25, .5, .75, 1
MECHANISMS: Final = 3  # emotional reaction, interpretation, exploration
MECHANISM_LEVELS: Final = 3  # 0, 1, 2
WORD_SCALE: Final = 6.0  # word vectors are that much shorter than states
OUTSIDE_SHARE: Final = 0.002  # of real replies below a bound, and above the other
_FAR: Final = -1e4  # what a masked token's attention gets
_LIKE_MOST: Final = 20.0  # where no place counts, a likeness is far below all others and must not drown them
_WIDE: Final = 1e4  # a bound that nothing reaches
_NARROWEST: Final = 0.02  # a count that hardly ever differs must not make a cliff


@dataclass(frozen=True, slots=True)
class Read:
    """A batch of readings: token states [batch, length, STATE_WIDTH], a summary of each reply, what the heads say."""

    states: Tensor
    summary: Tensor  # [batch, SUMMARY_WIDTH]
    mechanisms: Tensor  # [batch, 9]: log-probabilities, three levels of each mechanism
    genuine: Tensor  # [batch, 1]: logit of being an attempt at a reply


class JudgeNet(nn.Module):
    """Readings and criteria -> five logits per pair of them."""

    lowest: Tensor
    highest: Tensor
    spread: Tensor

    def __init__(
        self, encoder: MiniLm, *, rank: int, first_layer: int, scale: float = 2.0, dropout: float = 0.1
    ) -> None:
        """Layers from `first_layer` on get updates of `rank`; those below stay as they are and may be cached."""
        super().__init__()
        self.encoder = encoder.requires_grad_(requires_grad=False)
        self.first_layer = first_layer if rank else LAYERS
        add_updates(self.encoder, rank=rank, first_layer=self.first_layer, scale=scale)
        self.project, self.project_words = nn.Linear(WIDTH, STATE_WIDTH), nn.Linear(WIDTH, STATE_WIDTH, bias=False)
        # Of a criterion: what it asks for, and what it says.
        self.ask, self.ask_words = nn.Linear(WIDTH, 2 * STATE_WIDTH), nn.Linear(WIDTH, 2 * STATE_WIDTH, bias=False)
        self.word, self.next_word = nn.Linear(WIDTH, STATE_WIDTH), nn.Linear(WIDTH, STATE_WIDTH, bias=False)
        self.summarise = nn.Linear(2 * WIDTH + 2 * STATE_WIDTH + len(SURFACE_NAMES), SUMMARY_WIDTH)
        self.mechanisms = nn.Linear(SUMMARY_WIDTH + len(SURFACE_NAMES), MECHANISMS * MECHANISM_LEVELS)
        self.genuine = nn.Linear(SUMMARY_WIDTH + len(SURFACE_NAMES), 1)
        self.compare = nn.Linear(4 * STATE_WIDTH + 2, STATE_WIDTH)
        # What a criterion says of itself ("no", "without") turns round what its words find in the reply.
        self.turn, self.found = nn.Linear(STATE_WIDTH, STATE_WIDTH), nn.Linear(2 * STATE_WIDTH, STATE_WIDTH)
        self.hidden = nn.Linear(4 * STATE_WIDTH + SUMMARY_WIDTH, STATE_WIDTH)
        self.level = nn.Linear(STATE_WIDTH, LEVELS)
        self.dropout = nn.Dropout(dropout)
        # Between which counts of the surface real replies lie, and how far they spread; without `set_bounds` no bounds.
        for name, value in (("lowest", -_WIDE), ("highest", _WIDE), ("spread", 1.0)):
            self.register_buffer(name, torch.full((len(SURFACE_NAMES),), value))

    def set_bounds(self, surfaces: Tensor) -> None:
        """Take the bounds of `genuine` from the counts of real replies [replies, len(SURFACE_NAMES)]."""
        lowest, highest = torch.quantile(surfaces, torch.tensor([OUTSIDE_SHARE, 1 - OUTSIDE_SHARE]), dim=0)
        self.lowest, self.highest = lowest, highest
        self.spread = surfaces.std(dim=0).clamp(min=_NARROWEST)

    def outside(self, surface: Tensor) -> Tensor:
        """By how many standard deviations counts [batch, S] lie outside the bounds, all together: [batch, 1]."""
        over = functional.relu(surface - self.highest) + functional.relu(self.lowest - surface)
        return (over / self.spread).sum(-1, keepdim=True)

    def lower_states(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """What the frozen layers make of ids and mask [batch, length]: [batch, length, WIDTH]; never trained."""
        return self.encoder.run_layers(self.encoder.embed_tokens(input_ids), mask, first=0, last=self.first_layer)

    def upper_states(self, lower: Tensor, mask: Tensor) -> Tensor:
        """The states above the last layer."""
        return self.encoder.run_layers(lower, mask, first=self.first_layer, last=LAYERS)

    def bare_words(self, input_ids: Tensor) -> Tensor:
        """The words as they stand, without their neighbours: [batch, length] -> [batch, length, WIDTH].

        Which words a reply uses tells much, and the upper layers blur it.
        """
        words: Tensor = self.encoder.words(input_ids)
        return words * WORD_SCALE

    def read(self, states: Tensor, words: Tensor, reply_mask: Tensor, surface: Tensor) -> Read:
        """States above the last layer, `bare_words`, which tokens are the reply's, surface counts -> what is read."""
        # Words by themselves and each with the one after it; what follows the last is a marker.
        said = functional.gelu(self.word(words) + functional.pad(self.next_word(words)[:, 1:], (0, 0, 0, 1)))
        pooled = torch.cat([_mean_and_highest(tokens, reply_mask) for tokens in (states, said)], dim=-1)
        summary = functional.gelu(self.summarise(torch.cat([self.dropout(pooled), surface], dim=-1)))
        heard = torch.cat([self.dropout(summary), surface], dim=-1)
        by_mechanism = self.mechanisms(heard).view(-1, MECHANISMS, MECHANISM_LEVELS).log_softmax(-1)
        return Read(
            states=self.project(states) + self.project_words(words),
            summary=summary,
            mechanisms=by_mechanism.view(-1, MECHANISMS * MECHANISM_LEVELS),
            # What no real reply looks like costs one a standard deviation, whatever the network makes of it.
            genuine=self.genuine(heard) - self.outside(surface),
        )

    def criterion(self, states: Tensor, words: Tensor) -> Tensor:
        """A criterion's states and bare words -> [batch, tokens, 2 * STATE_WIDTH]: query, then content."""
        projected: Tensor = self.ask(states) + self.ask_words(words)
        return projected

    def grade(self, read: Read, masks: tuple[Tensor, Tensor], criteria: Tensor, criterion_mask: Tensor) -> Tensor:
        """Each reading by criteria of its own [readings, criteria, tokens, 2 * STATE_WIDTH] -> logits [..., LEVELS].

        `masks` are those of the reply's and of the other tokens; every criterion token looks at both apart.
        """
        readings, each, tokens, _ = criteria.shape
        query, content = criteria[..., :STATE_WIDTH], criteria[..., STATE_WIDTH:]
        flat = query.reshape(readings, each * tokens, STATE_WIDTH)
        likeness = flat @ read.states.transpose(1, 2) / math.sqrt(STATE_WIDTH)
        reply, context = ((_attended(likeness, mask) @ read.states).reshape(content.shape) for mask in masks)
        nearest = [_highest(likeness, mask).reshape(*content.shape[:-1], 1) for mask in masks]
        seen = torch.cat([content, reply, content * reply, context, *nearest], dim=-1)
        mask = criterion_mask.reshape(readings * each, tokens)
        compared = functional.gelu(self.compare(seen)).reshape(readings * each, tokens, STATE_WIDTH)
        asked = mean_pool(content.reshape(readings * each, tokens, STATE_WIDTH), mask)
        found = _mean_and_highest(compared, mask)
        turned = self.found(found) * self.turn(asked).tanh()
        summary = read.summary[:, None].expand(readings, each, SUMMARY_WIDTH).reshape(readings * each, SUMMARY_WIDTH)
        joined = torch.cat([found, turned, asked, summary], dim=-1)
        logits: Tensor = self.level(functional.gelu(self.hidden(self.dropout(joined))))
        return logits.reshape(readings, each, LEVELS)


def _mean_and_highest(tokens: Tensor, mask: Tensor) -> Tensor:
    """[batch, length, width] -> [batch, 2 * width], over the tokens that count."""
    highest = tokens.masked_fill(mask[:, :, None] == 0, _FAR).max(1).values
    return torch.cat([mean_pool(tokens, mask), highest], dim=-1)


def _attended(likeness: Tensor, mask: Tensor) -> Tensor:
    """[batch, tokens, length] -> how much each token looks at each place that counts."""
    return likeness.masked_fill(mask[:, None, :] == 0, _FAR).softmax(-1)


def _highest(likeness: Tensor, mask: Tensor) -> Tensor:
    """[batch, tokens, length] -> of each token the likeness to the nearest place that counts."""
    return likeness.masked_fill(mask[:, None, :] == 0, _FAR).max(-1).values.clamp(min=-_LIKE_MOST, max=_LIKE_MOST)


class ReadGraph(nn.Module):
    """Exported as `judge_read.onnx`."""

    def __init__(self, net: JudgeNet) -> None:
        super().__init__()
        self.net = net

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, reply_mask: Tensor, surface: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Ids and masks [1, L], counts [1, S] -> states [1, L, 128], summary [1, 128], mechanisms, genuine.

        `mechanisms` [1, 9] are log-probabilities, `genuine` [1, 1] is a logit.
        """
        states = self.net.upper_states(self.net.lower_states(input_ids, attention_mask), attention_mask)
        read = self.net.read(states, self.net.bare_words(input_ids), reply_mask, surface)
        return read.states, read.summary, read.mechanisms, read.genuine


class CriterionGraph(nn.Module):
    """Exported as `judge_criterion.onnx`."""

    def __init__(self, net: JudgeNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Ids and mask [1, T] -> [1, T, 256]."""
        lower = self.net.lower_states(input_ids, attention_mask)
        return self.net.criterion(self.net.upper_states(lower, attention_mask), self.net.bare_words(input_ids))


class LevelGraph(nn.Module):
    """Exported as `judge_level.onnx`: calibrated probabilities of the five levels."""

    def __init__(self, net: JudgeNet, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.net, self.temperature = net, temperature

    def forward(self, states: Tensor, reply_mask: Tensor, summary: Tensor, criterion_states: Tensor) -> Tensor:
        """What the other two graphs gave, without padding -> [1, 5], sum 1: of an attempt at a reply."""
        read = Read(states, summary, mechanisms=summary, genuine=summary)
        whole = torch.ones_like(criterion_states[:, :, 0])
        logits = self.net.grade(read, (reply_mask, 1 - reply_mask), criterion_states[:, None], whole[:, None])[:, 0]
        return (logits / self.temperature).softmax(-1)


def level_probabilities(logits: Tensor, *, genuine: Tensor, is_fault: Tensor, temperature: float) -> Tensor:
    """Logits [batch, LEVELS] with the two of [batch, 1] -> probabilities [batch, LEVELS].

    As far as a text is no attempt at a reply, it does nothing that is wanted (level 0) and counts as the fault that is
    asked about (level 1): otherwise garble would earn every criterion that says what to leave. Whether a criterion
    names a fault is known to whoever asks (`rubric.encoder_values.level_of` does the same); no network guesses it.
    """
    attempts = genuine.sigmoid()
    between = torch.zeros_like(logits[:, 2:])
    no_reply = torch.cat([1 - is_fault, between, is_fault], dim=-1)
    return attempts * (logits / temperature).softmax(-1) + (1 - attempts) * no_reply


def expected_level(probabilities: Tensor) -> Tensor:
    """The mean level under the five probabilities, in [0, 1]: [..., LEVELS] -> [...]."""
    return probabilities @ torch.tensor(SCORE_LEVELS, dtype=probabilities.dtype)


def trained_tensors(net: JudgeNet) -> dict[str, Tensor]:
    """What training changed, as fp16."""
    return {
        name: tensor.detach().half().contiguous()
        for name, tensor in net.state_dict().items()
        if name.endswith((".a", ".b")) or not name.startswith("encoder.")
    }


def load_trained(net: JudgeNet, tensors: Mapping[str, Tensor]) -> None:
    """Put saved tensors in place; ValueError where a name is missing or unknown."""
    load_tensors(net, tensors, wanted=trained_tensors(net).keys())


def merged(net: JudgeNet) -> JudgeNet:
    """The same network with every update folded into its layer, in evaluation mode."""
    whole = copy.deepcopy(net)
    merge_updates(whole.encoder)
    return whole.eval()
