// The conversation as a page knows it: events in, state out. No browser, no clock, no dice.
// `widget/store.ts` feeds it what arrives on the socket and what the visitor does; `timeline.ts` says what is shown.

import {
  type ConversationView,
  MAX_CHANGES,
  type MessageView,
  type Resource,
  type ServerEvent,
  type Thumb,
} from "./protocol";
import { appendToReply, failReply, findRow, putMessage, type Rows, setLive, startReply } from "./rows";
import type { Status } from "./socket";

/** A message on its way. `unsent` waits for a line or for Retry, `refused` for the visitor's decision. */
export interface PendingSend {
  readonly clientId: string;
  readonly text: string;
  readonly state: "sending" | "unsent" | "refused";
  readonly code: string | null;
}

export interface Failure {
  readonly code: string;
  readonly retryable: boolean;
}

export interface Card {
  readonly level: string;
  readonly resources: readonly Resource[];
  readonly isStaffed: boolean;
  readonly isAcknowledged: boolean;
}

export interface Notice {
  readonly afterSeq: number;
  readonly kind: "version" | "human" | "model";
  readonly name: string | null;
}

export interface ShownError {
  readonly code: string;
  readonly retryAfterS: number | null;
  readonly trace: string;
}

export interface ChatState {
  readonly connection: Status;
  readonly conversation: ConversationView | null;
  readonly rows: Rows;
  readonly outbox: readonly PendingSend[];
  /** Every change up to here is applied: what `hello` asks to continue from. */
  readonly lastSeq: number;
  /** Changes applied beyond `lastSeq`, with a hole before them that may be a lost event or one without a page. */
  readonly ahead: ReadonlySet<number>;
  readonly needsResync: boolean;
  readonly queue: { readonly place: number; readonly expectedWaitS: number } | null;
  /** The reply for which a sibling was asked and has not begun. */
  readonly regenerating: string | null;
  /** Visitor messages that got no reply, by their id. */
  readonly unanswered: Readonly<Record<string, Failure>>;
  readonly card: Card | null;
  readonly assignee: string | null;
  readonly typing: string | null;
  readonly notices: readonly Notice[];
  readonly error: ShownError | null;
}

export type LocalEvent =
  | { readonly type: "local.connection"; readonly status: Status }
  | { readonly type: "local.restore"; readonly pending: readonly PendingSend[] }
  | { readonly type: "local.send"; readonly clientId: string; readonly text: string }
  | { readonly type: "local.join"; readonly pending: PendingSend }
  | { readonly type: "local.retry" | "local.unsent" | "local.discard"; readonly clientId: string }
  | { readonly type: "local.regenerate"; readonly messageId: string }
  | { readonly type: "local.feedback"; readonly messageId: string; readonly value: Thumb }
  | { readonly type: "local.acknowledge" | "local.resynced" | "local.clearError" | "local.closed" | "local.forget" }
  | { readonly type: "local.consent"; readonly granted: boolean }
  /** What arrived is not what was written: ask again for this change. */
  | { readonly type: "local.garbled"; readonly changedSeq: number }
  | { readonly type: "local.error"; readonly code: string };

export const EMPTY: ChatState = {
  connection: { kind: "paused" },
  conversation: null,
  rows: [],
  outbox: [],
  lastSeq: 0,
  ahead: new Set(),
  needsResync: false,
  queue: null,
  regenerating: null,
  unanswered: {},
  card: null,
  assignee: null,
  typing: null,
  notices: [],
  error: null,
};

/** Moves `lastSeq` over every change that is now applied without a hole. */
function covering(state: ChatState, ...seqs: readonly number[]): ChatState {
  const ahead = new Set(state.ahead);
  for (const seq of seqs) if (seq > state.lastSeq) ahead.add(seq);
  let lastSeq = state.lastSeq;
  while (ahead.delete(lastSeq + 1)) lastSeq += 1;
  return { ...state, lastSeq, ahead };
}

function withoutPending(outbox: readonly PendingSend[], clientId: string | null): readonly PendingSend[] {
  return clientId === null ? outbox : outbox.filter((pending) => pending.clientId !== clientId);
}

function withMessage(state: ChatState, message: MessageView): ChatState {
  const outbox = message.kind === "visitor" ? withoutPending(state.outbox, message.client_id) : state.outbox;
  const hasReply = message.kind === "reply" && message.parent !== null;
  const { [hasReply ? (message.parent ?? "") : ""]: _answered, ...unanswered } = state.unanswered;
  const next = { ...state, rows: putMessage(state.rows, message), outbox, unanswered };
  return covering(next, message.seq, message.changed_seq);
}

type Welcome = Extract<ServerEvent, { type: "welcome" }>;

/** A page far behind gets the oldest changes only, and asks again from the newest of them. */
function upTo(event: Welcome): { readonly lastSeq: number; readonly needsResync: boolean } {
  const newest = event.changes.at(-1)?.changed_seq ?? 0;
  const isCut = event.changes.length >= MAX_CHANGES && newest < event.conversation.last_seq;
  return isCut ? { lastSeq: newest, needsResync: true } : { lastSeq: event.conversation.last_seq, needsResync: false };
}

function welcomed(state: ChatState, event: Welcome): ChatState {
  const { conversation } = event;
  const isSame = state.conversation?.id === conversation.id;
  const kept = isSame ? state : { ...EMPTY, connection: state.connection, outbox: state.outbox };
  let next = event.changes.reduce(withMessage, kept);
  if (event.live) next = { ...next, rows: setLive(next.rows, event.live) };
  const isStanding = conversation.card !== "none" && conversation.card !== "";
  const card: Card = {
    level: conversation.card,
    resources: conversation.resources,
    isStaffed: kept.card?.isStaffed ?? false,
    isAcknowledged: kept.card?.isAcknowledged ?? false,
  };
  return {
    ...next,
    conversation,
    ...upTo(event),
    ahead: new Set(),
    typing: null,
    card: isStanding ? card : null,
  };
}

function failed(state: ChatState, event: Extract<ServerEvent, { type: "reply.failed" }>): ChatState {
  const failure = { code: event.code, retryable: event.retryable };
  const next = { ...state, queue: null, regenerating: null };
  const known = findRow(state.rows, event.message_id);
  if (known?.kind === "visitor") return { ...next, unanswered: { ...state.unanswered, [known.id]: failure } };
  if (known) return { ...next, rows: failReply(state.rows, known.id, failure) };
  return { ...next, needsResync: true };
}

function refused(state: ChatState, event: Extract<ServerEvent, { type: "error" }>): ChatState {
  const shown = { code: event.code, retryAfterS: event.retry_after, trace: event.trace };
  const next = { ...state, regenerating: null };
  if (event.code === "not_running") return next; // the reply ended before the stop arrived: nothing to tell
  const outbox = state.outbox.map(
    (pending): PendingSend =>
      pending.clientId === event.client_id ? { ...pending, state: "refused", code: event.code } : pending,
  );
  return { ...next, outbox, error: shown };
}

const RANKS = ["none", "watch", "high"];

/** A card that was called a misunderstanding stays so until the concern rises again. */
function carded(known: Card | null, event: Extract<ServerEvent, { type: "safety.card" }>): Card | null {
  if (event.level === "none") return null;
  const hasRisen = known === null || RANKS.indexOf(event.level) > RANKS.indexOf(known.level);
  const isAcknowledged = !hasRisen && known.isAcknowledged;
  return { level: event.level, resources: event.resources, isStaffed: event.staffed, isAcknowledged };
}

function handedOver(state: ChatState, event: Extract<ServerEvent, { type: "handover" }>): ChatState {
  const conversation = state.conversation && { ...state.conversation, control: event.control };
  const kind = event.control === "human" ? "human" : "model";
  const notice: Notice = { afterSeq: state.rows.at(-1)?.seq ?? 0, kind, name: event.assignee };
  const hasChanged = state.conversation?.control !== event.control;
  const notices = hasChanged ? [...state.notices, notice] : state.notices;
  return { ...state, conversation, assignee: event.assignee, typing: null, notices };
}

function withPending(state: ChatState, clientId: string, change: Partial<PendingSend>): ChatState {
  const outbox = state.outbox.map((pending) => (pending.clientId === clientId ? { ...pending, ...change } : pending));
  return { ...state, outbox };
}

export function reduce(state: ChatState, event: ServerEvent | LocalEvent): ChatState {
  switch (event.type) {
    case "welcome":
      return welcomed(state, event);
    case "message.accepted":
      return withMessage({ ...state, outbox: withoutPending(state.outbox, event.client_id) }, event.message);
    case "message.changed":
      // Whoever was writing has written.
      return withMessage(event.message.kind === "staff" ? { ...state, typing: null } : state, event.message);
    case "reply.queued":
      return { ...state, regenerating: null, queue: { place: event.place, expectedWaitS: event.expected_wait_s } };
    case "reply.started": {
      const rows = startReply(state.rows, event.message_id, event.parent);
      return { ...state, rows, queue: null, regenerating: null };
    }
    case "reply.delta": {
      const rows = appendToReply(state.rows, event.message_id, event);
      return rows === null ? { ...state, needsResync: true } : { ...state, rows };
    }
    case "reply.finished":
      return { ...withMessage(state, event.message), queue: null, regenerating: null };
    case "reply.failed":
      return failed(state, event);
    case "safety.card": {
      return { ...state, card: carded(state.card, event) };
    }
    case "handover":
      return handedOver(state, event);
    case "presence":
      return { ...state, typing: event.is_typing && event.who !== "visitor" ? event.who : null };
    case "version.changed": {
      const notice: Notice = { afterSeq: state.rows.at(-1)?.seq ?? 0, kind: "version", name: event.policy };
      return { ...state, notices: [...state.notices, notice] };
    }
    case "error":
      return refused(state, event);
    case "pong":
      return state;
    default:
      return reduceLocal(state, event);
  }
}

function reduceLocal(state: ChatState, event: LocalEvent): ChatState {
  switch (event.type) {
    case "local.connection":
      return { ...state, connection: event.status };
    case "local.restore":
      return { ...state, outbox: event.pending };
    case "local.send": {
      const pending: PendingSend = { clientId: event.clientId, text: event.text, state: "sending", code: null };
      return { ...state, outbox: [...state.outbox, pending], error: null };
    }
    case "local.join": {
      const isKnown = state.rows.some((row) => row.client_id === event.pending.clientId);
      return isKnown ? state : { ...state, outbox: [...state.outbox, event.pending] };
    }
    case "local.retry":
      return { ...withPending(state, event.clientId, { state: "sending", code: null }), error: null };
    case "local.unsent":
      return withPending(state, event.clientId, { state: "unsent" });
    case "local.discard":
      return { ...state, outbox: withoutPending(state.outbox, event.clientId), error: null };
    case "local.regenerate": {
      const { [event.messageId]: _retried, ...unanswered } = state.unanswered;
      return { ...state, regenerating: event.messageId, unanswered, error: null };
    }
    case "local.feedback": {
      const rows = state.rows.map((row) => (row.id === event.messageId ? { ...row, feedback: event.value } : row));
      return { ...state, rows };
    }
    case "local.acknowledge":
      return { ...state, card: state.card && { ...state.card, isAcknowledged: true } };
    case "local.garbled":
      return { ...state, needsResync: true, lastSeq: Math.min(state.lastSeq, event.changedSeq - 1) };
    case "local.resynced":
      return { ...state, needsResync: false };
    case "local.clearError":
      return { ...state, error: null };
    case "local.error":
      return { ...state, error: { code: event.code, retryAfterS: null, trace: "" } };
    case "local.closed":
      return { ...state, conversation: state.conversation && { ...state.conversation, state: "closed" } };
    case "local.consent":
      return { ...state, conversation: state.conversation && { ...state.conversation, consent: event.granted } };
    case "local.forget":
      return { ...EMPTY, connection: state.connection };
  }
}
