"""What a reply is asked with: the conversation so far, the prompt, sampling, deadlines. For `reply` and `grading`."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from chat import policies
from chat.models import Message, WidgetSite
from chat.models.conversations import MessageKind
from chat.models.statements import Select
from chat.prompting import TOKENS_PER_UTTERANCE, Prompt, Said, build_prompt, default_system_prompt
from chat.services.replies import ReplyClaim
from rubric import Deadlines, Role, Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What was read from the database before the engine is asked."""

    prompt: Prompt
    site_id: int
    daily_token_budget: int


_said: Select[tuple[int, str, UUID | None, int | None, str]] = Select(
    lambda conversation: (
        (Message.objects.in_context() | Message.objects.filter(kind=MessageKind.SAFETY))
        .filter(conversation_id=conversation)
        .order_by("seq")
        .values_list("seq", "kind", "parent_id", "parent__seq", "text")
    ),
    conversation=UUID,
)
_site: Select[tuple[str, int]] = Select(
    lambda site: WidgetSite.objects.filter(pk=site).values_list("system_prompt", "daily_token_budget"), site=int
)


def said_before(conversation_id: UUID, *, context_to_seq: int, answered: UUID | None) -> list[Said]:
    """The context of a reply: everything up to `context_to_seq`, without the siblings that answer `answered`."""
    said = []
    for seq, kind, parent, parent_seq, text in _said.all(conversation=conversation_id):
        position = parent_seq if parent_seq is not None and kind != MessageKind.STAFF else seq
        if position > context_to_seq or (kind == MessageKind.REPLY and parent == answered):
            continue
        role = Role.USER if kind == MessageKind.VISITOR else Role.ASSISTANT
        said.append(Said(seq=seq, position=position, role=role, text=text))
    return said


def prepare(claim: ReplyClaim) -> Prepared:
    """Read the context and build the prompt (database; called in a thread)."""
    site = _site.first(site=claim.site_id)
    if site is None:
        raise WidgetSite.DoesNotExist
    system_prompt, daily_token_budget = site
    said = said_before(claim.conversation_id, context_to_seq=claim.context_to_seq, answered=claim.parent_id)
    prompt = build_prompt(
        said,
        system=system_prompt or default_system_prompt(),
        budget_tokens=settings.RAPPORT_CONTEXT_TOKENS,
        count=policies.token_counter(),
    )
    return Prepared(prompt=prompt, site_id=claim.site_id, daily_token_budget=daily_token_budget)


def reply_sampling(claim: ReplyClaim) -> Sampling:
    """Plain temperature sampling: the distribution sampled from can be rebuilt from logits in the trainer (rule 9)."""
    return Sampling(
        max_tokens=settings.RAPPORT_REPLY_MAX_TOKENS, temperature=settings.RAPPORT_TEMPERATURE, seed=claim.seed
    )


def reply_deadlines() -> Deadlines:
    return Deadlines(
        connect_s=settings.RAPPORT_CONNECT_S,
        first_token_s=settings.RAPPORT_FIRST_TOKEN_S,
        between_tokens_s=settings.RAPPORT_BETWEEN_TOKENS_S,
        whole_s=settings.RAPPORT_WHOLE_REPLY_S,
    )


def estimate_prompt_tokens(prompt: Prompt) -> int:
    """What reading the prompt took, where the engine did not come to say so."""
    count = policies.token_counter()
    return sum(count(one.text) + TOKENS_PER_UTTERANCE for one in prompt.transcript)
