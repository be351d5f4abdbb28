// The messages a page knows, in order, and how each event changes them. Pure; used by `conversation.ts`.

import { applyDelta, liveText } from "./livetext";
import type { LiveReply, MessageView } from "./protocol";

/** A message as shown; `points` is the length of its text in code points (kept for running replies' deltas). */
export interface Row extends MessageView {
  readonly points: number;
}

export type Rows = readonly Row[];

export function hasEnded({ status }: MessageView): boolean {
  return status !== "queued" && status !== "running";
}

export function findRow(rows: Rows, id: string): Row | undefined {
  return rows.find((row) => row.id === id);
}

function withRow(rows: Rows, row: Row): Rows {
  const others = rows.filter((other) => other.id !== row.id);
  const at = others.findIndex((other) => other.seq > row.seq);
  return at === -1 ? [...others, row] : [...others.slice(0, at), row, ...others.slice(at)];
}

/** The newest state of a message wins; text that streamed in further than a running row's stored copy is kept. */
export function putMessage(rows: Rows, message: MessageView): Rows {
  const known = findRow(rows, message.id);
  if (known && known.changed_seq > message.changed_seq) return rows;
  const row: Row = { ...message, ...liveText(message.text) };
  const hasStreamedFurther = known !== undefined && !hasEnded(message) && known.points > row.points;
  return withRow(rows, hasStreamedFurther ? { ...row, text: known.text, points: known.points } : row);
}

/** A reply that has begun: a known row runs, an unknown one gets its place after everything known so far. */
export function startReply(rows: Rows, id: string, parent: string | null): Rows {
  const known = findRow(rows, id);
  if (known) return hasEnded(known) ? rows : withRow(rows, { ...known, status: "running" });
  const newest = rows.at(-1)?.seq ?? 0;
  const siblings = parent === null ? 0 : rows.filter((row) => row.kind === "reply" && row.parent === parent).length;
  return withRow(rows, {
    id,
    seq: Math.floor(newest) + 0.5, // provisional until a message event brings the real one
    changed_seq: 0,
    kind: "reply",
    status: "running",
    text: "",
    points: 0,
    parent,
    sibling_index: siblings,
    sibling_count: siblings + 1,
    selected: true,
    created_at: "",
    client_id: null,
    code: null,
    retryable: false,
    feedback: 0,
    author: null,
  });
}

/** null where something is missing before the delta, so that the page must ask again. */
export function appendToReply(
  rows: Rows,
  id: string,
  delta: { readonly offset: number; readonly text: string },
): Rows | null {
  const known = findRow(rows, id);
  if (!known) return null;
  if (hasEnded(known)) return rows;
  const grown = applyDelta(known, delta.offset, delta.text);
  if (grown === null) return null;
  return rows.map((row) => (row === known ? { ...row, ...grown, status: "running" } : row));
}

/** A welcome's copy of the running reply; what this page already streamed beyond it is kept. */
export function setLive(rows: Rows, live: LiveReply): Rows {
  const started = startReply(rows, live.message_id, null);
  const known = findRow(started, live.message_id);
  if (!known || hasEnded(known) || known.text.startsWith(live.text)) return started;
  return withRow(started, { ...known, ...liveText(live.text) });
}

/** The reply broke off: its text stays where it is. */
export function failReply(
  rows: Rows,
  id: string,
  failure: { readonly code: string; readonly retryable: boolean },
): Rows {
  return rows.map((row) => {
    if (row.id !== id) return row;
    return { ...row, status: hasEnded(row) ? row.status : "failed", code: failure.code, retryable: failure.retryable };
  });
}
