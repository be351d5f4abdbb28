// Values for tests: a message, a welcome, with the fields a test cares about.

import type { ConversationView, MessageView, ServerEvent } from "../src/protocol";

export function message(fields: Partial<MessageView> & { readonly id: string }): MessageView {
  return {
    seq: 1,
    changed_seq: 1,
    kind: "visitor",
    status: "complete",
    text: "hello",
    parent: null,
    sibling_index: 0,
    sibling_count: 1,
    selected: true,
    created_at: "2026-11-30T09:00:00+00:00",
    client_id: null,
    code: null,
    retryable: false,
    feedback: 0,
    author: null,
    ...fields,
  };
}

export function conversation(fields: Partial<ConversationView> = {}): ConversationView {
  return {
    id: "conversation-1",
    state: "open",
    control: "model",
    last_seq: 0,
    site: "demo",
    consent: false,
    policy: "policy-1",
    card: "none",
    resources: [],
    ...fields,
  };
}

export function welcome(
  fields: {
    conversation?: Partial<ConversationView>;
    changes?: readonly MessageView[];
    live?: { message_id: string; text: string; offset: number };
  } = {},
): Extract<ServerEvent, { type: "welcome" }> {
  return {
    type: "welcome",
    conversation: conversation(fields.conversation),
    changes: fields.changes ?? [],
    live: fields.live ?? null,
  };
}
