// The wire: every event that travels on a socket. Mirrors `chat/protocol.py`; both parse `wire-examples.json`.
// `socket.ts` hands in decoded frames, `conversation.ts` reduces what comes out. Offsets count Unicode code points.

import {
  asObject,
  count,
  flag,
  flagOr,
  type JsonObject,
  listOf,
  number,
  numberOrNull,
  oneOf,
  text,
  textOr,
  textOrNull,
} from "./json";

export const MAX_TEXT_CHARS = 8_000;
export const MAX_COMMENT_CHARS = 2_000;
/** A welcome holds at most this many changes, the oldest first (`changes_after` of the server). */
export const MAX_CHANGES = 500;

// One constant each, so that a page holds only those that it asks about.
export const CLOSE_MALFORMED = 4400;
export const CLOSE_TOKEN = 4401;
export const CLOSE_ORIGIN = 4403;
export const CLOSE_IDLE = 4408;
export const CLOSE_REPLACED = 4409;
export const CLOSE_RATE = 4429;
export const CLOSE_OVERLOADED = 1013;

export const CLOSE = {
  malformed: CLOSE_MALFORMED,
  token: CLOSE_TOKEN,
  origin: CLOSE_ORIGIN,
  idle: CLOSE_IDLE,
  replaced: CLOSE_REPLACED,
  tooLarge: 4413,
  rate: CLOSE_RATE,
  slowReader: 4430,
  restart: 1012,
  overloaded: CLOSE_OVERLOADED,
} as const;

// --- what a visitor sends -------------------------------------------------------------------------------------------

export type ClientEvent =
  | { readonly type: "hello"; readonly token: string; readonly last_seq: number }
  | { readonly type: "message.send"; readonly client_id: string; readonly text: string }
  | { readonly type: "reply.stop" | "reply.regenerate" | "reply.select"; readonly message_id: string }
  | {
      readonly type: "feedback.set";
      readonly message_id: string;
      readonly value: Thumb;
      readonly reasons: readonly string[];
      readonly comment: string;
    }
  | { readonly type: "safety.ack" | "typing" | "ping" };

export type Thumb = -1 | 0 | 1;

export function encode(event: ClientEvent): string {
  return JSON.stringify(event);
}

export type TextProblem = "text_invalid" | "empty_text" | "text_too_long";

export function codePoints(value: string): number {
  let points = value.length;
  for (let at = 0; at < value.length - 1; at += 1) {
    const unit = value.charCodeAt(at);
    if (unit >= 0xd800 && unit <= 0xdbff) {
      const next = value.charCodeAt(at + 1);
      if (next >= 0xdc00 && next <= 0xdfff) {
        points -= 1;
        at += 1;
      }
    }
  }
  return points;
}

/** What the server would say about this text, so that the page can say it first. null = it may be sent. */
export function problemOf(value: string): TextProblem | null {
  if (value.includes("\0") || /\p{Surrogate}/u.test(value)) return "text_invalid";
  const stripped = value.trim();
  if (!/[^\p{C}\p{Z}]/u.test(stripped)) return "empty_text";
  return codePoints(stripped) > MAX_TEXT_CHARS ? "text_too_long" : null;
}

// --- what the server sends ------------------------------------------------------------------------------------------

/** `note` travels on the staff's socket only. */
const KINDS = ["visitor", "reply", "staff", "safety", "note"] as const;
const STATUSES = ["queued", "running", "complete", "stopped", "failed", "interrupted", "blocked"] as const;
export type MessageKind = (typeof KINDS)[number];
export type MessageStatus = (typeof STATUSES)[number];

export interface MessageView {
  readonly id: string;
  readonly seq: number;
  readonly changed_seq: number;
  readonly kind: MessageKind;
  readonly status: MessageStatus;
  readonly text: string;
  readonly parent: string | null;
  readonly sibling_index: number;
  readonly sibling_count: number;
  readonly selected: boolean;
  readonly created_at: string;
  readonly client_id: string | null;
  readonly code: string | null;
  readonly retryable: boolean;
  readonly feedback: number;
  readonly author: string | null;
}

export interface Resource {
  readonly name: string;
  readonly phone: string;
  readonly text: string;
  readonly url: string;
  readonly hours: string;
  readonly country: string;
}

export interface LiveReply {
  readonly message_id: string;
  readonly text: string;
  readonly offset: number;
}

export interface ConversationView {
  readonly id: string;
  readonly state: string;
  readonly control: string;
  readonly last_seq: number;
  readonly site: string;
  readonly consent: boolean;
  readonly policy: string;
  readonly card: string;
  readonly resources: readonly Resource[];
}

export type ServerEvent =
  | {
      readonly type: "welcome";
      readonly conversation: ConversationView;
      readonly changes: readonly MessageView[];
      readonly live: LiveReply | null;
    }
  | { readonly type: "message.accepted"; readonly client_id: string; readonly message: MessageView }
  | { readonly type: "message.changed"; readonly message: MessageView }
  | {
      readonly type: "reply.queued";
      readonly message_id: string;
      readonly place: number;
      readonly expected_wait_s: number;
    }
  | { readonly type: "reply.started"; readonly message_id: string; readonly parent: string | null }
  | { readonly type: "reply.delta"; readonly message_id: string; readonly offset: number; readonly text: string }
  | { readonly type: "reply.finished"; readonly message: MessageView; readonly sha256: string }
  | { readonly type: "reply.failed"; readonly message_id: string; readonly code: string; readonly retryable: boolean }
  | {
      readonly type: "safety.card";
      readonly level: string;
      readonly resources: readonly Resource[];
      readonly staffed: boolean;
    }
  | { readonly type: "handover"; readonly control: string; readonly assignee: string | null }
  | { readonly type: "presence"; readonly who: string; readonly is_typing: boolean }
  | { readonly type: "version.changed"; readonly policy: string }
  | {
      readonly type: "error";
      readonly code: string;
      readonly retry_after: number | null;
      readonly trace: string;
      readonly client_id: string | null;
    }
  | { readonly type: "pong" };

// How each field of a value is read: one reader by its name, which throws ShapeError where the frame has something else.
type Shape<T> = { readonly [F in keyof T]: (from: JsonObject, field: string) => T[F] };

function read<T>(shape: Shape<T>, from: JsonObject): T {
  const fields = Object.entries<(from: JsonObject, field: string) => unknown>(shape);
  return Object.fromEntries(fields.map(([field, reader]) => [field, reader(from, field)])) as T;
}

function inside<T>(shape: Shape<T>): (from: JsonObject, field: string) => T {
  return (from, field) => read(shape, asObject(from[field], field));
}

function listed<T>(shape: Shape<T>): (from: JsonObject, field: string) => readonly T[] {
  return (from, field) => listOf(from, field, (one) => read(shape, one));
}

const MESSAGE: Shape<MessageView> = {
  id: text,
  seq: count,
  changed_seq: count,
  kind: (from, field) => oneOf(from, field, KINDS),
  status: (from, field) => oneOf(from, field, STATUSES),
  text,
  parent: textOrNull,
  sibling_index: count,
  sibling_count: count,
  selected: flag,
  created_at: text,
  client_id: textOrNull,
  code: textOrNull,
  retryable: (from, field) => flagOr(from, field, false),
  feedback: (from, field) => numberOrNull(from, field) ?? 0,
  author: textOrNull,
};

const RESOURCE: Shape<Resource> = { name: text, phone: text, text, url: text, hours: text, country: text };

export function readResource(from: JsonObject): Resource {
  return read(RESOURCE, from);
}

const CONVERSATION: Shape<ConversationView> = {
  id: text,
  state: text,
  control: text,
  last_seq: count,
  site: text,
  consent: flag,
  policy: text,
  card: text,
  resources: (from, field) => (from[field] === undefined ? [] : listed(RESOURCE)(from, field)),
};

const LIVE: Shape<LiveReply> = { message_id: text, text, offset: count };

type EventOf<K extends ServerEvent["type"]> = Omit<Extract<ServerEvent, { type: K }>, "type">;

const EVENTS: { readonly [K in ServerEvent["type"]]: Shape<EventOf<K>> } = {
  welcome: {
    conversation: inside(CONVERSATION),
    changes: listed(MESSAGE),
    live: (from, field) => (from[field] === null || from[field] === undefined ? null : inside(LIVE)(from, field)),
  },
  "message.accepted": { client_id: text, message: inside(MESSAGE) },
  "message.changed": { message: inside(MESSAGE) },
  "reply.queued": { message_id: text, place: count, expected_wait_s: number },
  "reply.started": { message_id: text, parent: textOrNull },
  "reply.delta": { message_id: text, offset: count, text },
  "reply.finished": { message: inside(MESSAGE), sha256: text },
  "reply.failed": { message_id: text, code: text, retryable: flag },
  "safety.card": {
    level: text,
    resources: listed(RESOURCE),
    staffed: (from, field) => flagOr(from, field, false),
  },
  handover: { control: text, assignee: textOrNull },
  presence: { who: text, is_typing: flag },
  "version.changed": { policy: text },
  error: {
    code: text,
    retry_after: numberOrNull,
    trace: (from, field) => textOr(from, field, ""),
    client_id: textOrNull,
  },
  pong: {},
};

/** A decoded frame as an event; null for a type that this page does not know (a newer server). Throws ShapeError. */
export function parseServerEvent(value: unknown): ServerEvent | null {
  const from = asObject(value, "event");
  const kind = text(from, "type");
  if (!Object.hasOwn(EVENTS, kind)) return null;
  const type = kind as ServerEvent["type"];
  return { ...read<object>(EVENTS[type], from), type } as ServerEvent;
}
