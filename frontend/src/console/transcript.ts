// The transcript's state: pages of turns from REST, kept live by the events of one conversation. Pure.
// An event that cannot be drawn from itself (grades, new turns, redacted text) marks what must be fetched again.

import { applyDelta, liveText } from "../livetext";
import type { MessageView, ServerEvent } from "../protocol";
import type { Note, Reply, Turn, TurnPage } from "./turns";

export interface TranscriptState {
  readonly turns: readonly Turn[];
  /** What staff wrote before the visitor wrote anything; afterwards it stands at the first turn. */
  readonly notes: readonly Note[];
  /** Which page each turn came from, by its cursor (null = the first). */
  readonly pageOf: Readonly<Record<string, string | null>>;
  readonly isLoaded: boolean;
  readonly next: string | null;
  /** Pages to fetch again. */
  readonly stale: readonly (string | null)[];
  readonly isVisitorTyping: boolean;
  readonly control: string | null;
}

export const NOTHING_YET: TranscriptState = {
  turns: [],
  notes: [],
  pageOf: {},
  isLoaded: false,
  next: null,
  stale: [],
  isVisitorTyping: false,
  control: null,
};

export type TranscriptEvent =
  | ServerEvent
  | { readonly type: "turn.graded"; readonly message_id: string }
  | {
      readonly type: "page.loaded";
      readonly page: TurnPage;
      readonly cursor: string | null;
      readonly isAgain: boolean;
    }
  | { readonly type: "page.fetching"; readonly cursor: string | null }
  | { readonly type: "conversation.erased" }
  | { readonly type: "topic.resync" };

function withStale(state: TranscriptState, cursor: string | null): TranscriptState {
  return state.stale.includes(cursor) ? state : { ...state, stale: [...state.stale, cursor] };
}

/** Pages come oldest first, so a new turn appears on the last one. */
function edgeCursor(state: TranscriptState): string | null {
  const newest = state.turns.at(-1);
  return newest ? (state.pageOf[newest.id] ?? null) : null;
}

function staleTurn(state: TranscriptState, id: string | null): TranscriptState {
  const isKnown = id !== null && Object.hasOwn(state.pageOf, id);
  return withStale(state, isKnown ? (state.pageOf[id] ?? null) : edgeCursor(state));
}

type Loaded = Extract<TranscriptEvent, { type: "page.loaded" }>;

/** A stored copy of a running reply may be behind what streamed in. */
function keepingStreamed(fresh: Turn, known: Turn | undefined): Turn {
  const replies = fresh.replies.map((reply) => {
    const before = known?.replies.find((candidate) => candidate.id === reply.id);
    const isBehind = reply.status === "running" && before !== undefined && before.text.length > reply.text.length;
    return isBehind ? { ...reply, text: before.text } : reply;
  });
  return { ...fresh, replies };
}

function loaded(state: TranscriptState, { page, cursor, isAgain }: Loaded): TranscriptState {
  const fresh = page.results.map((turn) =>
    keepingStreamed(
      turn,
      state.turns.find((known) => known.id === turn.id),
    ),
  );
  const ids = new Set(fresh.map((turn) => turn.id));
  const turns = [...state.turns.filter((turn) => !ids.has(turn.id)), ...fresh].toSorted((a, b) => a.seq - b.seq);
  const pageOf = { ...state.pageOf, ...Object.fromEntries([...ids].map((id) => [id, cursor])) };
  const next = { ...state, turns, pageOf, isLoaded: true, notes: turns.length === 0 ? page.notes : [] };
  if (!isAgain) return { ...next, next: page.next };
  // The last page overflowed while somebody watched: what came after it belongs on the screen too.
  const hasGrownPast = state.next === null && page.next !== null;
  return hasGrownPast ? withStale(next, page.next) : next;
}

function changeReply(state: TranscriptState, id: string, change: (reply: Reply) => Reply): TranscriptState {
  const turns = state.turns.map((turn) =>
    turn.replies.some((reply) => reply.id === id)
      ? { ...turn, replies: turn.replies.map((reply) => (reply.id === id ? change(reply) : reply)) }
      : turn,
  );
  return { ...state, turns };
}

function turnOfReply(state: TranscriptState, id: string): Turn | undefined {
  return state.turns.find((turn) => turn.replies.some((reply) => reply.id === id));
}

function started(state: TranscriptState, id: string, parent: string | null): TranscriptState {
  const turn = state.turns.find((candidate) => candidate.id === parent);
  if (!turn) return staleTurn(state, null);
  if (turn.replies.some((reply) => reply.id === id)) return state;
  const reply: Reply = {
    id,
    seq: turn.seq,
    status: "running",
    text: "",
    code: "",
    isSelected: true,
    siblingIndex: turn.replies.length,
    policy: "",
    firstTokenMs: null,
    totalMs: null,
    tokens: null,
    feedback: 0,
    score: null,
  };
  const turns = state.turns.map((other) => (other === turn ? { ...turn, replies: [...turn.replies, reply] } : other));
  return { ...state, turns };
}

function grown(state: TranscriptState, id: string, delta: { offset: number; text: string }): TranscriptState {
  const turn = turnOfReply(state, id);
  const reply = turn?.replies.find((candidate) => candidate.id === id);
  const live = reply && applyDelta(liveText(reply.text), delta.offset, delta.text);
  if (!live) return state; // the staff's copy has gaps by design; the finished reply brings the whole text
  return changeReply(state, id, (known) => ({ ...known, text: live.text }));
}

function changed(state: TranscriptState, message: MessageView): TranscriptState {
  if (message.kind === "visitor") return staleTurn(state, message.id);
  if (message.kind !== "reply") return staleTurn(state, message.parent);
  const isRunning = message.status === "running" || message.status === "queued";
  const next = changeReply(state, message.id, (reply) => ({
    ...reply,
    status: message.status,
    text: isRunning ? reply.text : message.text,
    isSelected: message.selected,
    feedback: message.feedback,
  }));
  return isRunning ? next : staleTurn(next, message.parent);
}

export function follow(state: TranscriptState, event: TranscriptEvent): TranscriptState {
  switch (event.type) {
    case "page.loaded":
      return loaded(state, event);
    case "page.fetching":
      return { ...state, stale: state.stale.filter((cursor) => cursor !== event.cursor) };
    case "conversation.erased":
      return { ...NOTHING_YET, isLoaded: true };
    case "topic.resync":
      return [...new Set(Object.values(state.pageOf)), edgeCursor(state)].reduce(withStale, state);
    case "turn.graded":
      return staleTurn(state, event.message_id);
    case "reply.started":
      return started(state, event.message_id, event.parent);
    case "reply.delta":
      return grown(state, event.message_id, event);
    case "message.accepted":
    case "message.changed":
    case "reply.finished":
      return changed({ ...state, isVisitorTyping: false }, event.message);
    case "reply.failed":
      return staleTurn(state, turnOfReply(state, event.message_id)?.id ?? event.message_id);
    case "safety.card":
      return staleTurn(state, null);
    case "presence":
      return event.who === "visitor" ? { ...state, isVisitorTyping: event.is_typing } : state;
    case "handover":
      return { ...state, control: event.control };
    case "welcome":
    case "reply.queued":
    case "version.changed":
    case "error":
    case "pong":
      return state;
  }
}
