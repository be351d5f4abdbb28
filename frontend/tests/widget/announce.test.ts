// Field report A11: a live region that speaks every token. An answer is announced twice at most.

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type ChatState, EMPTY, type LocalEvent, reduce } from "../../src/conversation";
import type { ServerEvent } from "../../src/protocol";
import { SENTENCES } from "../../src/sentences";
import { learn } from "../../src/texts";
import { announcementOf, isHeard, newlyEnded, type Reading } from "../../src/widget/announce";
import { finishedUpTo, heard, spoken as withoutMarks } from "../../src/widget/reading";
import { message, welcome } from "../make";

learn(SENTENCES);

function spoken(events: readonly (ServerEvent | LocalEvent)[], reading: Reading = "answers"): readonly string[] {
  const said: string[] = [];
  let state: ChatState = EMPTY;
  for (const event of events) {
    const next = reduce(state, event);
    const ofAnswer = isHeard(state, next, reading) ? heard(state, next, reading) : null;
    for (const announcement of [announcementOf(state, next), ofAnswer]) {
      if (announcement !== null) said.push(announcement);
    }
    state = next;
  }
  return said;
}

const words = Array.from({ length: 200 }, (_, at) => `word${at} `);
const answer = words.join("");
const streamed: readonly ServerEvent[] = words.map((word, at) => ({
  type: "reply.delta",
  message_id: "r1",
  offset: words.slice(0, at).join("").length,
  text: word,
}));

const accepted: ServerEvent = { type: "message.accepted", client_id: "c1", message: message({ id: "v1" }) };
const finished: ServerEvent = {
  type: "reply.finished",
  message: message({ id: "r1", seq: 2, changed_seq: 3, kind: "reply", parent: "v1", text: answer }),
  sha256: createHash("sha256").update(answer).digest("hex"),
};

describe("announcementOf", () => {
  it("speaks twice for an answer of 200 tokens: that it comes, and what it says", () => {
    const said = spoken([
      welcome(),
      { type: "local.send", clientId: "c1", text: "hello" },
      accepted,
      { type: "reply.queued", message_id: "v1", place: 1, expected_wait_s: 1 },
      { type: "reply.started", message_id: "r1", parent: "v1" },
      ...streamed,
      finished,
      finished,
    ]);
    expect(said).toEqual(["The AI is answering.", answer.trim()]);
  });

  it("does not read a history aloud", () => {
    const history = Array.from({ length: 30 }, (_, at) =>
      message({ id: `m${at}`, seq: at + 1, changed_seq: at + 1, kind: at % 2 ? "reply" : "visitor" }),
    );
    expect(spoken([welcome({ changes: history, conversation: { last_seq: 30 } })])).toEqual([]);
  });

  it("tells of a card once, and of a person's message", () => {
    const card: ServerEvent = { type: "safety.card", level: "high", resources: [], staffed: false };
    const staff = message({ id: "s1", seq: 2, changed_seq: 2, kind: "staff", author: "Alex", text: "I am here." });
    const said = spoken([welcome(), card, card, { type: "message.changed", message: staff }]);
    expect(said).toHaveLength(2);
    expect(said[1]).toBe("Alex wrote: I am here.");
  });
});

describe("sentence mode", () => {
  const text = "That sounds **hard**. Do you want\nto say more? I am";
  const asked: ServerEvent = { type: "message.changed", message: message({ id: "v1" }) };
  const started: ServerEvent = { type: "reply.started", message_id: "r1", parent: "v1" };
  const letters = [...text].map(
    (letter, offset): ServerEvent => ({ type: "reply.delta", message_id: "r1", offset, text: letter }),
  );
  const ending = (status: "complete" | "stopped", code: string | null = null): ServerEvent => ({
    type: "reply.finished",
    message: message({ id: "r1", seq: 2, changed_seq: 3, kind: "reply", parent: "v1", text, status, code }),
    sha256: "",
  });

  it("reads each sentence once, as soon as it is there, and the rest at the end", () => {
    const said = spoken([welcome(), asked, started, ...letters, ending("complete")], "sentences");
    expect(said).toEqual(["The AI is answering.", "That sounds hard.", "Do you want", "to say more?", "I am"]);
  });

  it("says that an answer was stopped and reads nothing twice", () => {
    const said = spoken([welcome(), asked, started, ...letters, ending("stopped")], "sentences");
    expect(said.at(-1)).toBe("The answer was stopped.");
    expect(new Set(said).size).toBe(said.length);
  });

  it("does not read aloud what a page finds when it comes in mid-answer", () => {
    const running = message({
      id: "r1",
      seq: 2,
      changed_seq: 2,
      kind: "reply",
      parent: "v1",
      status: "running",
      text: "",
    });
    const live = { message_id: "r1", text: "One. Two. Thr", offset: 13 };
    const more: ServerEvent = { type: "reply.delta", message_id: "r1", offset: 13, text: "ee. Four" };
    expect(spoken([welcome({ changes: [running], live }), more], "sentences")).toEqual(["Three."]);
  });
});

describe("a spoken text", () => {
  it("has no marks of its layout", () => {
    expect(withoutMarks("# Hello\n- **one**\n- `two`\n> see [this](https://example.org)")).toBe(
      "Hello\none\ntwo\nsee this",
    );
  });

  it("ends its sentences where a reader would, in English and Arabic", () => {
    const finished = (text: string) => text.slice(0, finishedUpTo(text));
    expect(finished("It costs 3.50 today. And")).toBe("It costs 3.50 today. ");
    expect(finished("\u0643\u064a\u0641 \u062d\u0627\u0644\u0643\u061f \u0623\u0646\u0627")).toBe(
      "\u0643\u064a\u0641 \u062d\u0627\u0644\u0643\u061f ",
    );
    expect(finished("No end")).toBe("");
  });

  it("takes the number before an item for no sentence", () => {
    const finished = (text: string) => text.slice(0, finishedUpTo(text));
    expect(finished("1. ")).toBe("");
    expect(finished("Two things:\n1. Sleep. 2. ")).toBe("Two things:\n1. Sleep. ");
    expect(finished("It was 1999. Then")).toBe("It was 1999. ");
  });
});

describe("a failed answer", () => {
  it("is announced with its reason", () => {
    const failed = message({
      id: "r1",
      seq: 2,
      changed_seq: 2,
      kind: "reply",
      status: "failed",
      code: "timeout_whole",
    });
    const said = spoken([welcome(), { type: "message.changed", message: failed }]);
    expect(said).toEqual(["The answer took too long and was cut off."]);
    expect(newlyEnded(EMPTY, EMPTY)).toEqual([]);
  });
});
