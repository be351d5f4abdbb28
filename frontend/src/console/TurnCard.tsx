// One turn: the visitor's message and the replies on one side, what mattered and how it was graded on the other.

import { useState } from "preact/hooks";
import { memo } from "../shared/memo";
import { PlainText } from "../shared/Text";
import { Criteria } from "./Criteria";
import { duration, moment, words } from "./format";
import { ReplyCard, Reward } from "./ReplyCard";
import type { Note, Reply, Turn, TurnRubric, Verdict } from "./turns";
import { WeightsBar } from "./WeightsBar";

interface TurnCardProps {
  readonly turn: Turn;
  readonly place: number;
}

function shownReply(replies: readonly Reply[], chosen: string | null): Reply | undefined {
  return (
    replies.find((reply) => reply.id === chosen) ?? replies.findLast((reply) => reply.isSelected) ?? replies.at(-1)
  );
}

export const TurnCard = memo(({ turn, place }: TurnCardProps) => {
  const [chosen, setChosen] = useState<string | null>(null);
  const reply = shownReply(turn.replies, chosen);
  return (
    <article class="turn" aria-label={`Turn ${place}`} data-turn={turn.id}>
      <header class="turn-head">
        <h3>Turn {place}</h3>
        <time class="quiet" dateTime={turn.createdAt}>
          {moment(turn.createdAt)}
        </time>
        {turn.safety.map((verdict) => (
          <SafetyTag key={`${verdict.direction}-${verdict.version}-${verdict.level}`} verdict={verdict} />
        ))}
        {turn.isRedacted && <span class="quiet">redacted</span>}
      </header>
      <div class="turn-body">
        <div class="turn-talk">
          <div class="said visitor">
            <p class="row-author">Visitor</p>
            <PlainText text={turn.text} />
          </div>
          {turn.replies.length > 1 && (
            <Siblings replies={turn.replies} shown={reply} onChoose={(id) => setChosen(id)} />
          )}
          {reply && (
            <div class="said">
              <p class="row-author">AI</p>
              <ReplyCard reply={reply} />
            </div>
          )}
          {turn.notes.map((note) => (
            <NoteCard key={note.id} note={note} />
          ))}
        </div>
        <div class="turn-grades">
          {turn.rubric ? <Priorities rubric={turn.rubric} reply={reply} /> : <p class="quiet">{whyUngraded(turn)}</p>}
          {turn.rubric && reply && <Reward score={reply.score} />}
        </div>
      </div>
    </article>
  );
});

/** Turns of the safety path are never graded and never train. */
function whyUngraded(turn: Turn): string {
  const isSafetyTurn = turn.safety.some((verdict) => verdict.level !== "none" && verdict.direction === "visitor");
  return isSafetyTurn ? "A safety turn: it is not graded and trains nothing" : "No priorities yet";
}

function SafetyTag({ verdict }: { readonly verdict: Verdict }) {
  const score = verdict.score === null ? "" : ` ${verdict.score.toFixed(2)}`;
  const isRaised = verdict.level !== "none";
  return (
    <span class={isRaised ? "tag alert" : "tag"} title={verdict.version}>
      safety, {verdict.direction}: {verdict.level}
      {score}
    </span>
  );
}

interface SiblingsProps {
  readonly replies: readonly Reply[];
  readonly shown: Reply | undefined;
  onChoose(id: string): void;
}

function Siblings({ replies, shown, onChoose }: SiblingsProps) {
  return (
    <fieldset class="sibling-tabs">
      <legend class="unseen">Answers to this message</legend>
      {replies.map((reply) => (
        <button
          type="button"
          key={reply.id}
          class="tab"
          aria-pressed={reply.id === shown?.id}
          onClick={() => onChoose(reply.id)}
        >
          Answer {reply.siblingIndex + 1}
          {reply.isSelected && <span class="quiet"> shown to the visitor</span>}
        </button>
      ))}
    </fieldset>
  );
}

function Priorities({ rubric, reply }: { readonly rubric: TurnRubric; readonly reply: Reply | undefined }) {
  return (
    <>
      <WeightsBar weights={rubric.weights} />
      <p class="facts">
        {rubric.isFallback && (
          <span class="tag alert">fallback{rubric.fallbackReason !== "" && `: ${words(rubric.fallbackReason)}`}</span>
        )}
        {rubric.repairs > 0 && <span class="tag">repaired</span>}
        <span>{rubric.generator}</span>
        {rubric.latencyMs !== null && <span>{duration(rubric.latencyMs)}</span>}
      </p>
      <Criteria criteria={rubric.criteria} reply={reply} />
    </>
  );
}

export function NoteCard({ note }: { readonly note: Note }) {
  const who = note.kind === "safety" ? "Safety message" : `${note.author === "" ? "Team" : note.author} (${note.kind})`;
  return (
    <div class={`said ${note.kind}`}>
      <p class="row-author">{who}</p>
      <PlainText text={note.text} />
    </div>
  );
}
