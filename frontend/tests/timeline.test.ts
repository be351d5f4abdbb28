import { describe, expect, it } from "vitest";
import { type ChatState, EMPTY, type LocalEvent, reduce } from "../src/conversation";
import type { MessageView, ServerEvent } from "../src/protocol";
import { isAwaitingReply, itemsOf, lastReplyKey } from "../src/timeline";
import { message, welcome } from "./make";

function stateAfter(...events: readonly (ServerEvent | LocalEvent)[]): ChatState {
  return events.reduce(reduce, EMPTY);
}

const visitor = message({ id: "v1", seq: 1, changed_seq: 1 });

function reply(fields: Partial<MessageView> & { readonly id: string }): MessageView {
  return message({ kind: "reply", parent: "v1", text: fields.id, ...fields });
}

function shownTexts(state: ChatState): readonly string[] {
  return itemsOf(state).flatMap((item) => (item.kind === "message" ? [item.row.text] : []));
}

describe("itemsOf", () => {
  it("shows one reply of a turn, with its siblings at hand, at the place of the first", () => {
    const changes = [
      visitor,
      reply({ id: "r1", seq: 2, changed_seq: 7, selected: false }),
      message({ id: "v2", seq: 4, changed_seq: 4, text: "and then" }),
      reply({ id: "r2", seq: 6, changed_seq: 6, sibling_index: 1 }),
    ];
    const state = stateAfter(welcome({ changes, conversation: { last_seq: 7 } }));
    expect(shownTexts(state)).toEqual(["hello", "r2", "and then"]);
    const group = itemsOf(state)[1];
    expect(group?.kind === "message" && group.siblings.map((row) => row.id)).toEqual(["r1", "r2"]);
  });

  it("shows the running sibling, then the one that the visitor chose", () => {
    const first = reply({ id: "r1", seq: 2, changed_seq: 2 });
    const running = stateAfter(
      welcome({ changes: [visitor, first], conversation: { last_seq: 2 } }),
      { type: "reply.started", message_id: "r2", parent: "v1" },
      { type: "reply.delta", message_id: "r2", offset: 0, text: "second" },
    );
    expect(shownTexts(running)).toEqual(["hello", "second"]);
    const ended = reply({ id: "r2", seq: 3, changed_seq: 4, sibling_index: 1, text: "second" });
    const chosen = [ended, { ...first, changed_seq: 5, selected: true }, { ...ended, changed_seq: 6, selected: false }]
      .map((row): ServerEvent => ({ type: "message.changed", message: row }))
      .reduce(reduce, running);
    expect(shownTexts(chosen)).toEqual(["hello", "r1"]);
  });

  it("keeps unsent messages at the end", () => {
    const state = stateAfter(welcome({ changes: [visitor] }), { type: "local.send", clientId: "c2", text: "more" });
    expect(itemsOf(state).at(-1)).toMatchObject({ kind: "pending", pending: { text: "more" } });
  });

  it("offers to answer anew for the newest turn only", () => {
    const answered = stateAfter(welcome({ changes: [visitor, reply({ id: "r1", seq: 2, changed_seq: 2 })] }));
    expect(lastReplyKey(itemsOf(answered))).not.toBeNull();
    const goneOn = reduce(answered, {
      type: "message.changed",
      message: message({ id: "v2", seq: 3, changed_seq: 3 }),
    });
    expect(lastReplyKey(itemsOf(goneOn))).toBeNull();
  });
});

describe("isAwaitingReply", () => {
  it("is true from the moment of sending to the first text", () => {
    const sent = stateAfter(welcome(), { type: "local.send", clientId: "c1", text: "hello" });
    expect(isAwaitingReply(sent)).toBe(true);
    const accepted = reduce(sent, { type: "message.accepted", client_id: "c1", message: visitor });
    expect(isAwaitingReply(accepted)).toBe(true);
    const started = reduce(accepted, { type: "reply.started", message_id: "r1", parent: "v1" });
    expect(isAwaitingReply(started)).toBe(true);
    const speaking = reduce(started, { type: "reply.delta", message_id: "r1", offset: 0, text: "Oh" });
    expect(isAwaitingReply(speaking)).toBe(false);
  });

  it("is false where no answer of the AI comes", () => {
    const kept = stateAfter(welcome({ changes: [visitor] }), {
      type: "reply.failed",
      message_id: "v1",
      code: "overloaded",
      retryable: true,
    });
    expect(isAwaitingReply(kept)).toBe(false);
    expect(isAwaitingReply(stateAfter(welcome({ changes: [visitor], conversation: { control: "human" } })))).toBe(
      false,
    );
    expect(isAwaitingReply(stateAfter(welcome({ changes: [visitor], conversation: { state: "closed" } })))).toBe(false);
    const unsent = stateAfter(
      welcome(),
      { type: "local.send", clientId: "c1", text: "hello" },
      { type: "local.unsent", clientId: "c1" },
    );
    expect(isAwaitingReply(unsent)).toBe(false);
    const safety = message({ id: "s1", seq: 2, changed_seq: 2, kind: "safety", parent: "v1" });
    expect(isAwaitingReply(stateAfter(welcome({ changes: [visitor, safety] })))).toBe(false);
  });
});
