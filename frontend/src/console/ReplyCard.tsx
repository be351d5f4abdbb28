// One reply of a turn: its text with what the judge quoted, how it ended, how fast it was, what the visitor thought.

import { piecesOf } from "./evidence";
import { duration, level, words } from "./format";
import type { Reply, Score } from "./turns";

export function ReplyCard({ reply }: { readonly reply: Reply }) {
  const pieces = piecesOf(reply.text, reply.score?.judgements ?? []);
  return (
    <div class="reply-card" data-status={reply.status} data-message={reply.id}>
      <div class="text" dir="auto">
        {pieces.map((piece, at) => {
          const key = `${at}-${piece.isQuoted}`;
          return piece.isQuoted ? <mark key={key}>{piece.text}</mark> : <span key={key}>{piece.text}</span>;
        })}
      </div>
      <p class="facts">
        <Facts reply={reply} />
      </p>
    </div>
  );
}

function Facts({ reply }: { readonly reply: Reply }) {
  const facts = [
    reply.policy,
    reply.firstTokenMs === null ? "" : `first token ${duration(reply.firstTokenMs)}`,
    reply.totalMs === null ? "" : `whole ${duration(reply.totalMs)}`,
    reply.tokens === null ? "" : `${reply.tokens} tokens`,
  ].filter((fact) => fact !== "");
  return (
    <>
      {reply.status !== "complete" && (
        <span class={reply.status === "running" || reply.status === "queued" ? "tag" : "tag alert"}>
          {words(reply.status)}
          {reply.code !== "" && reply.code !== reply.status && `: ${words(reply.code)}`}
        </span>
      )}
      {reply.feedback !== 0 && <span class="tag">{reply.feedback > 0 ? "visitor: good" : "visitor: bad"}</span>}
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
    </>
  );
}

export function Reward({ score }: { readonly score: Score | null }) {
  if (!score) return <p class="reward quiet">Not graded yet</p>;
  if (score.reward === null) {
    return (
      <p class="reward">
        <span class="tag alert">{score.isPartial ? "partly graded" : "not graded"}</span>
        <span class="quiet">No reward, so it trains nothing.</span>
        <GradedBy score={score} />
      </p>
    );
  }
  return (
    <p class="reward">
      Reward <strong>{level(score.reward)}</strong>
      {score.isPartial && <span class="tag alert">partly graded</span>}
      <GradedBy score={score} />
    </p>
  );
}

function GradedBy({ score }: { readonly score: Score }) {
  const kind = score.implementation === "" ? "judge" : `${words(score.implementation)} judge`;
  return (
    <span class="quiet judge">
      graded by the {kind} {score.judge}: {score.humanEvidence}
    </span>
  );
}
