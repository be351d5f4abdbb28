"""The transcript page's turns: what was said, what mattered, how the replies were graded. A fixed number of queries.

Texts are redacted unless the caller may reveal them (the door checks and audits that). Evidence spans are moved so that
they fit the text that is shown. A turn is a visitor message with the replies to it; staff messages, safety messages and
notes stand at the visitor message before them (the first turn also takes what stands before it).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from uuid import UUID

from chat.models import (
    Conversation,
    Feedback,
    Generation,
    Message,
    SafetyVerdict,
    TurnRubric,
    TurnScore,
)
from chat.models.conversations import MessageKind
from chat.models.priorities import ScoreRole
from chat.redaction import Ledger, Redacted, redact
from chat.services.judges import describe_evidence
from chat.services.transcript_views import (
    CriterionView,
    JudgementView,
    NoteView,
    ReplyView,
    RubricView,
    ScoreView,
    TurnView,
    VerdictView,
)


def turns_of(conversation: Conversation, visitor_messages: Sequence[Message], *, is_revealed: bool) -> list[TurnView]:
    """The turns of a page of visitor messages (ordered by `seq`)."""
    if not visitor_messages:
        return []
    others = _others(conversation, visitor_messages)
    shown = _shown_texts(
        conversation, sorted([*visitor_messages, *others], key=lambda m: m.seq), is_revealed=is_revealed
    )
    details = _Details(visitor_messages, [message for message in others if message.kind == MessageKind.REPLY], shown)
    notes = _notes_by_turn(visitor_messages, others)
    return [
        TurnView(
            id=message.pk,
            seq=message.seq,
            text=shown.text_of(message.pk),
            created_at=message.created_at,
            redacted=not is_revealed,
            safety=tuple(
                verdict for one in (message.pk, *details.reply_ids(message.pk)) for verdict in details.verdicts[one]
            ),
            rubric=details.rubrics.get(message.pk),
            replies=tuple(details.replies[message.pk]),
            notes=tuple(_note_view(note, shown) for note in notes[message.pk]),
        )
        for message in visitor_messages
    ]


def notes_without_turn(conversation: Conversation, *, is_revealed: bool) -> list[NoteView]:
    """What staff wrote where no visitor message is yet that it could stand at; [] where there is one."""
    if conversation.messages.filter(kind=MessageKind.VISITOR).exists():
        return []
    beside = conversation.messages.exclude(kind=MessageKind.REPLY).select_related("author")
    notes = list(beside.order_by("seq"))
    shown = _shown_texts(conversation, notes, is_revealed=is_revealed) if notes else None
    return [_note_view(note, shown) for note in notes] if shown else []


def ledger_of(conversation_id: UUID) -> Ledger:
    """A ledger that has read the whole conversation so far, in order: the socket redacts as the page does."""
    ledger = Ledger()
    for text in Message.objects.filter(conversation_id=conversation_id).order_by("seq").values_list("text", flat=True):
        redact(text, ledger=ledger)
    return ledger


class _ShownTexts:
    """The texts of a page as this reader may see them."""

    def __init__(self, texts: dict[UUID, Redacted], *, ledger: Ledger | None) -> None:
        self._texts = texts
        self._ledger = ledger

    def text_of(self, message_id: UUID) -> str:
        return self._texts[message_id].text

    def place(self, message_id: UUID, span: object) -> tuple[int, int] | None:
        if not (isinstance(span, list | tuple) and len(span) == 2 and all(isinstance(edge, int) for edge in span)):
            return None
        return self._texts[message_id].place(span[0], span[1])

    def criterion(self, text: str) -> str:
        """A criterion speaks of the conversation, so it may repeat what was redacted there."""
        return redact(text, ledger=self._ledger).text if self._ledger is not None else text


def _shown_texts(conversation: Conversation, page: Sequence[Message], *, is_revealed: bool) -> _ShownTexts:
    if is_revealed:
        return _ShownTexts({one.pk: Redacted(text=one.text, spans=()) for one in page}, ledger=None)
    ledger = Ledger()
    earlier = conversation.messages.filter(seq__lt=page[0].seq).order_by("seq").values_list("text", flat=True)
    for text in earlier:  # so that a name from the first page is one on every page, under the same mark
        redact(text, ledger=ledger)
    return _ShownTexts({one.pk: redact(one.text, ledger=ledger) for one in page}, ledger=ledger)


def _others(conversation: Conversation, turns: Sequence[Message]) -> list[Message]:
    """Replies to these turns, and what else was said from the first of them until the next page begins."""
    later = conversation.messages.filter(kind=MessageKind.VISITOR, seq__gt=turns[-1].seq)
    next_seq = later.order_by("seq").values_list("seq", flat=True).first()
    is_first_page = not conversation.messages.filter(kind=MessageKind.VISITOR, seq__lt=turns[0].seq).exists()
    beside = conversation.messages.exclude(kind__in=[MessageKind.VISITOR, MessageKind.REPLY])
    beside = beside.filter(seq__gt=0 if is_first_page else turns[0].seq)
    if next_seq is not None:
        beside = beside.filter(seq__lt=next_seq)
    replies = conversation.messages.filter(kind=MessageKind.REPLY, is_shown=True, parent__in=[one.pk for one in turns])
    return [*replies.order_by("seq"), *beside.select_related("author").order_by("seq")]


def _notes_by_turn(turns: Sequence[Message], others: Iterable[Message]) -> dict[UUID, list[Message]]:
    notes: dict[UUID, list[Message]] = defaultdict(list)
    for message in others:
        if message.kind != MessageKind.REPLY:
            owner = next((turn for turn in reversed(turns) if turn.seq < message.seq), turns[0])
            notes[owner.pk].append(message)
    return notes


def _note_view(message: Message, shown: _ShownTexts) -> NoteView:
    return NoteView(
        id=message.pk,
        kind=message.kind,
        text=shown.text_of(message.pk),
        author=message.author.shown_name if message.author else None,
        created_at=message.created_at,
    )


class _Details:
    """Everything that hangs on the page's messages, one query a table, sorted to its message."""

    def __init__(self, turns: Sequence[Message], replies: Sequence[Message], shown: _ShownTexts) -> None:
        self._shown = shown
        turn_ids, reply_ids = [one.pk for one in turns], [one.pk for one in replies]
        self.verdicts = _verdicts([*turn_ids, *reply_ids])
        self.rubrics = {
            row.message_id: self._rubric_view(row)
            for row in TurnRubric.objects.filter(message__in=turn_ids).select_related("generator").order_by("id")
        }
        generations = {
            row.message_id: row
            for row in Generation.objects.filter(message__in=reply_ids)
            .select_related("policy")
            .defer("token_ids", "token_logprobs")
        }
        graded = TurnScore.objects.filter(reply__in=reply_ids, role=ScoreRole.TRAINING)
        rows = list(graded.select_related("judge").order_by("id"))
        evidence = describe_evidence(row.judge for row in rows)
        scores = {row.reply_id: self._score_view(row, human_evidence=evidence[row.judge_id]) for row in rows}
        thumbs = dict(Feedback.objects.filter(message__in=reply_ids).order_by("id").values_list("message", "value"))
        self.replies: dict[UUID, list[ReplyView]] = defaultdict(list)
        for reply in replies:
            if reply.parent_id is not None:
                view = self._reply_view(reply, generations.get(reply.pk), scores.get(reply.pk), thumbs.get(reply.pk))
                self.replies[reply.parent_id].append(view)

    def reply_ids(self, turn_id: UUID) -> list[UUID]:
        return [reply.id for reply in self.replies[turn_id]]

    def _reply_view(
        self, reply: Message, generation: Generation | None, score: ScoreView | None, thumb: int | None
    ) -> ReplyView:
        return ReplyView(
            id=reply.pk,
            seq=reply.seq,
            status=reply.status,
            text=self._shown.text_of(reply.pk),
            code=reply.failure_code,
            selected=reply.is_selected,
            sibling_index=reply.sibling_index,
            policy=generation.policy.name if generation and generation.policy else "",
            first_token_ms=generation.first_token_ms if generation else None,
            total_ms=generation.total_ms if generation else None,
            tokens=generation.completion_tokens if generation else None,
            feedback=thumb,
            score=score,
        )

    def _rubric_view(self, row: TurnRubric) -> RubricView:
        return RubricView(
            weights=dict(row.weights),
            criteria=tuple(
                CriterionView(
                    id=str(one.get("id", "")),
                    text=self._shown.criterion(str(one.get("text", ""))),
                    dimension=str(one.get("dimension", "")),
                    polarity=str(one.get("polarity", "want")),
                )
                for one in row.criteria
            ),
            generator=row.generator.name,
            is_fallback=row.is_fallback,
            fallback_reason=row.fallback_reason,
            repairs=row.repairs,
            latency_ms=row.latency_ms,
        )

    def _score_view(self, row: TurnScore, *, human_evidence: str) -> ScoreView:
        return ScoreView(
            judge=row.judge.name,
            implementation=str(row.judge.config.get("implementation", "")),
            human_evidence=human_evidence,
            reward=row.reward,
            partial=row.is_partial,
            by_dimension=dict(row.by_dimension),
            judgements=tuple(
                JudgementView(
                    criterion_id=str(one.get("criterion_id", "")),
                    level=one.get("level"),
                    none_reason=one.get("none_reason"),
                    evidence=self._shown.place(row.reply_id, one.get("evidence")),
                    quote_unfound=bool(one.get("quote_unfound", False)),
                )
                for one in row.judgements
            ),
        )


def _verdicts(message_ids: Sequence[UUID]) -> dict[UUID, list[VerdictView]]:
    verdicts: dict[UUID, list[VerdictView]] = defaultdict(list)
    for row in SafetyVerdict.objects.filter(message__in=message_ids).order_by("id"):
        verdicts[row.message_id].append(
            VerdictView(direction=row.direction, level=row.level, score=row.score, version=row.screen_version)
        )
    return verdicts
