import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChatState, EMPTY, type LocalEvent, reduce } from "../src/conversation";
import type { ServerEvent } from "../src/protocol";
import { findRow } from "../src/rows";
import { message, welcome } from "./make";

function stateAfter(...events: readonly (ServerEvent | LocalEvent)[]): ChatState {
  return events.reduce(reduce, EMPTY);
}

function hash(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

const asked = message({ id: "v1", seq: 1, changed_seq: 1, client_id: "c1" });
const started: ServerEvent = { type: "reply.started", message_id: "r1", parent: "v1" };

function delta(offset: number, text: string): ServerEvent {
  return { type: "reply.delta", message_id: "r1", offset, text };
}

function finishedWith(text: string): ServerEvent {
  const reply = message({ id: "r1", seq: 2, changed_seq: 3, kind: "reply", parent: "v1", text });
  return { type: "reply.finished", message: reply, sha256: hash(text) };
}

describe("the team", () => {
  it("is no longer writing once what they wrote is there", () => {
    const written = message({ id: "s1", seq: 1, changed_seq: 1, kind: "staff", author: "Alex", text: "I am here." });
    const writing = stateAfter(welcome(), { type: "presence", who: "Alex", is_typing: true });
    expect(writing.typing).toBe("Alex");
    expect(reduce(writing, { type: "message.changed", message: asked }).typing).toBe("Alex");
    expect(reduce(writing, { type: "message.changed", message: written }).typing).toBeNull();
  });
});

describe("sending", () => {
  it("keeps a message in the outbox until the server has it", () => {
    const sending = stateAfter(welcome(), { type: "local.send", clientId: "c1", text: "hello" });
    expect(sending.outbox).toHaveLength(1);
    const accepted = reduce(sending, { type: "message.accepted", client_id: "c1", message: asked });
    expect(accepted.outbox).toHaveLength(0);
    expect(accepted.rows.map((row) => row.id)).toEqual(["v1"]);
  });

  it("shows a message once, whether its acknowledgement or another tab's event comes first, or both come twice", () => {
    const accepted: ServerEvent = { type: "message.accepted", client_id: "c1", message: asked };
    const changed: ServerEvent = { type: "message.changed", message: asked };
    const state = stateAfter(
      welcome(),
      { type: "local.send", clientId: "c1", text: "hello" },
      changed,
      accepted,
      accepted,
    );
    expect(state.outbox).toHaveLength(0);
    expect(state.rows).toHaveLength(1);
  });

  it("takes a message out of the outbox when a welcome shows that the server has it", () => {
    const state = stateAfter(
      { type: "local.send", clientId: "c1", text: "hello" },
      { type: "local.unsent", clientId: "c1" },
      welcome({ changes: [asked], conversation: { last_seq: 1 } }),
    );
    expect(state.outbox).toHaveLength(0);
  });

  it("keeps a refused message with the reason", () => {
    const state = stateAfter(
      welcome(),
      { type: "local.send", clientId: "c1", text: "hello" },
      { type: "error", code: "rate", retry_after: 5, trace: "", client_id: "c1" },
    );
    expect(state.outbox[0]).toMatchObject({ state: "refused", code: "rate", text: "hello" });
    expect(state.error).toMatchObject({ code: "rate", retryAfterS: 5 });
  });
});

describe("a streamed reply", () => {
  it("gives the exact text after any loss, doubling and reordering, once it has finished", () => {
    const plan = fc.record({
      text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 80 }),
      size: fc.integer({ min: 1, max: 6 }),
      picks: fc.array(fc.nat(100), { maxLength: 60 }),
    });
    fc.assert(
      fc.property(plan, ({ text, size, picks }) => {
        const points = Array.from(text);
        const deltas = points.flatMap((_, at) =>
          at % size === 0 ? [delta(at, points.slice(at, at + size).join(""))] : [],
        );
        const noisy = picks.map((pick) => deltas[pick % deltas.length]).filter((event) => event !== undefined);
        const before = stateAfter(
          welcome(),
          { type: "message.accepted", client_id: "c1", message: asked },
          started,
          ...noisy,
        );
        expect(text.startsWith(findRow(before.rows, "r1")?.text ?? "")).toBe(true);
        const end = [finishedWith(text), ...noisy].reduce(reduce, before);
        expect(findRow(end.rows, "r1")).toMatchObject({ text, status: "complete" });
      }),
    );
  });

  it("asks again on a gap, and a welcome with the live text heals it", () => {
    const gap = stateAfter(welcome(), started, delta(0, "That "), delta(11, "tiring"));
    expect(gap.needsResync).toBe(true);
    const healed = reduce(gap, welcome({ live: { message_id: "r1", text: "That sounds tiring", offset: 18 } }));
    expect(healed.needsResync).toBe(false);
    const grown = reduce(healed, delta(18, "."));
    expect(findRow(grown.rows, "r1")?.text).toBe("That sounds tiring.");
  });

  it("keeps what it streamed beyond an older live copy", () => {
    const state = stateAfter(
      welcome(),
      started,
      delta(0, "That sounds tiring"),
      welcome({ live: { message_id: "r1", text: "That ", offset: 5 } }),
    );
    expect(findRow(state.rows, "r1")?.text).toBe("That sounds tiring");
  });

  it("is found whole after a reload in mid-answer", () => {
    const running = message({
      id: "r1",
      seq: 2,
      changed_seq: 2,
      kind: "reply",
      status: "running",
      text: "",
      parent: "v1",
    });
    const state = stateAfter(
      welcome({
        conversation: { last_seq: 2 },
        changes: [asked, running],
        live: { message_id: "r1", text: "That sounds", offset: 11 },
      }),
      delta(11, " tiring"),
    );
    expect(findRow(state.rows, "r1")).toMatchObject({ text: "That sounds tiring", status: "running", parent: "v1" });
  });

  it("asks again where the text that came is not the text that was written", () => {
    const finish = finishedWith("That");
    const garbled: LocalEvent = { type: "local.garbled", changedSeq: 3 };
    const state = stateAfter(welcome({ conversation: { last_seq: 2 } }), started, finish, garbled);
    expect(state.needsResync).toBe(true);
    expect(state.lastSeq).toBe(2);
  });

  it("keeps its text when it fails, and says that it may be tried again", () => {
    const state = stateAfter(welcome(), started, delta(0, "Half of it"), {
      type: "reply.failed",
      message_id: "r1",
      code: "engine_broken",
      retryable: true,
    });
    expect(findRow(state.rows, "r1")).toMatchObject({ text: "Half of it", status: "failed", retryable: true });
  });

  it("is not revived by a delta that comes late", () => {
    const state = stateAfter(welcome(), started, delta(0, "Yes"), finishedWith("Yes"), delta(3, " and more"), started);
    expect(findRow(state.rows, "r1")).toMatchObject({ text: "Yes", status: "complete" });
    expect(state.needsResync).toBe(false);
  });

  it("is asked for when a delta of an unknown reply comes", () => {
    expect(stateAfter(welcome(), delta(0, "That")).needsResync).toBe(true);
  });
});

describe("changes", () => {
  it("never let an older state of a message replace a newer one", () => {
    const newer = message({ id: "r1", seq: 2, changed_seq: 7, kind: "reply", text: "new" });
    const older = message({ id: "r1", seq: 2, changed_seq: 3, kind: "reply", text: "old" });
    const state = stateAfter(
      welcome(),
      { type: "message.changed", message: newer },
      { type: "message.changed", message: older },
    );
    expect(findRow(state.rows, "r1")?.text).toBe("new");
  });

  it("are asked for again from before a hole, so that a lost event comes after the next greeting", () => {
    const third = message({ id: "s1", seq: 3, changed_seq: 3, kind: "staff" });
    const state = stateAfter(
      welcome(),
      { type: "message.accepted", client_id: "c1", message: asked },
      { type: "message.changed", message: third }, // the one with seq 2 was lost
    );
    expect(state.lastSeq).toBe(1);
    const filled = reduce(state, { type: "message.changed", message: message({ id: "s0", seq: 2, changed_seq: 2 }) });
    expect(filled.lastSeq).toBe(3);
  });

  it("are all asked for by a page that is far behind", () => {
    const changes = Array.from({ length: 500 }, (_, at) => message({ id: `m${at}`, seq: at + 1, changed_seq: at + 1 }));
    const state = stateAfter(welcome({ conversation: { last_seq: 620 }, changes }));
    expect(state).toMatchObject({ lastSeq: 500, needsResync: true });
    const rest = Array.from({ length: 120 }, (_, at) =>
      message({ id: `n${at}`, seq: at + 501, changed_seq: at + 501 }),
    );
    const done = reduce(state, welcome({ conversation: { last_seq: 620 }, changes: rest }));
    expect(done).toMatchObject({ lastSeq: 620, needsResync: false });
    expect(done.rows).toHaveLength(620);
  });

  it("begin anew when the server answers with another conversation", () => {
    const state = stateAfter(
      welcome({ changes: [asked], conversation: { last_seq: 1 } }),
      welcome({ conversation: { id: "conversation-2" } }),
    );
    expect(state.rows).toHaveLength(0);
    expect(state.lastSeq).toBe(0);
  });
});

describe("the visitor's message without an answer", () => {
  const overloaded: ServerEvent = { type: "reply.failed", message_id: "v1", code: "overloaded", retryable: true };

  it("is kept with the reason, until a reply comes", () => {
    const kept = stateAfter(welcome(), { type: "message.accepted", client_id: "c1", message: asked }, overloaded);
    expect(kept.unanswered).toEqual({ v1: { code: "overloaded", retryable: true } });
    expect(reduce(kept, finishedWith("Here I am")).unanswered).toEqual({});
  });
});

describe("the safety card", () => {
  const card = (level: string): ServerEvent => ({ type: "safety.card", level, resources: [], staffed: false });

  it("stays acknowledged while the concern does not rise, and comes back when it does", () => {
    const lowered = stateAfter(welcome(), card("high"), { type: "local.acknowledge" }, card("watch"));
    expect(lowered.card).toMatchObject({ level: "watch", isAcknowledged: true });
    expect(reduce(lowered, card("high")).card).toMatchObject({ level: "high", isAcknowledged: false });
  });

  it("is there again after a reload while it stands", () => {
    const state = stateAfter(welcome({ conversation: { card: "high" } }));
    expect(state.card).toMatchObject({ level: "high", isAcknowledged: false });
    expect(reduce(state, welcome()).card).toBeNull();
  });
});

describe("the rest", () => {
  it("shows who answers, and says so once", () => {
    const handover: ServerEvent = { type: "handover", control: "human", assignee: "Alex" };
    const state = stateAfter(welcome(), handover, handover);
    expect(state.conversation?.control).toBe("human");
    expect(state.notices).toHaveLength(1);
  });

  it("says nothing about a stop that came too late", () => {
    const late: ServerEvent = { type: "error", code: "not_running", retry_after: null, trace: "", client_id: null };
    expect(stateAfter(welcome(), late).error).toBeNull();
  });

  it("forgets everything when the visitor's data is deleted", () => {
    const state = stateAfter(welcome({ changes: [asked] }), { type: "local.forget" });
    expect(state).toEqual({ ...EMPTY, connection: state.connection });
  });
});
