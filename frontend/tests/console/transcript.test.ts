import { describe, expect, it } from "vitest";
import { piecesOf, quoteOf } from "../../src/console/evidence";
import { follow, NOTHING_YET, type TranscriptEvent, type TranscriptState } from "../../src/console/transcript";
import { cursorOf, type Judgement, readPage, readTurn, readTurnPage, type Turn } from "../../src/console/turns";
import { message } from "../make";

const WIRE_TURN = {
  id: "v1",
  seq: 1,
  text: "I cannot sleep",
  created_at: "2026-11-30T09:00:00+00:00",
  redacted: true,
  safety: [{ direction: "visitor", level: "none", score: 0.02, version: "screen-1" }],
  rubric: {
    weights: { cognitive: 0.25, affective: 0.55, proactive: 0.2 },
    criteria: [{ id: "a1", text: "Names the tiredness", dimension: "affective", polarity: "want" }],
    generator: "rubric-1",
    is_fallback: false,
    fallback_reason: "",
    repairs: 1,
    latency_ms: 900,
  },
  replies: [
    {
      id: "r1",
      seq: 2,
      status: "complete",
      text: "That sounds tiring 🫖.",
      code: "",
      selected: true,
      sibling_index: 0,
      policy: "policy-1",
      first_token_ms: 80,
      total_ms: 900,
      tokens: 12,
      feedback: null,
      score: {
        judge: "judge-1",
        implementation: "encoder",
        human_evidence: "no human evidence yet (3 of 200 labelled pairs)",
        reward: 0.7,
        partial: false,
        by_dimension: { cognitive: null, affective: 0.75, proactive: 0.5 },
        judgements: [{ criterion_id: "a1", level: 0.75, none_reason: null, evidence: [5, 18], quote_unfound: false }],
      },
    },
  ],
  notes: [{ id: "n1", kind: "staff", text: "I am here", author: null, created_at: "2026-11-30T09:01:00+00:00" }],
};

function turn(id: string, seq: number): Turn {
  return { ...readTurn({ ...WIRE_TURN, replies: [] }), id, seq };
}

function stateAfter(...events: readonly TranscriptEvent[]): TranscriptState {
  return events.reduce(follow, NOTHING_YET);
}

function page(cursor: string | null, turns: readonly Turn[], next: string | null = null): TranscriptEvent {
  return { type: "page.loaded", page: { results: turns, next, notes: [] }, cursor, isAgain: false };
}

describe("readTurn", () => {
  it("reads a turn with its grades", () => {
    const read = readTurn(WIRE_TURN);
    expect(read.rubric?.weights).toEqual({ cognitive: 0.25, affective: 0.55, proactive: 0.2 });
    expect(read.replies[0]?.score?.judgements[0]).toEqual({
      criterionId: "a1",
      level: 0.75,
      noneReason: "",
      evidence: [5, 18],
      isQuoteUnfound: false,
    });
    expect(read.replies[0]?.score?.implementation).toBe("encoder");
    expect(read.replies[0]?.score?.humanEvidence).toBe("no human evidence yet (3 of 200 labelled pairs)");
    expect(read.replies[0]?.feedback).toBe(0);
  });

  it("keeps what is not graded as not graded", () => {
    const read = readTurn({ ...WIRE_TURN, rubric: null, replies: [{ ...WIRE_TURN.replies[0], score: null }] });
    expect(read.rubric).toBeNull();
    expect(read.replies[0]?.score).toBeNull();
  });

  it("takes a cursor from an address", () => {
    const address = "http://here/api/staff/conversations/1/turns/?cursor=cD0y%3D";
    expect(readPage({ results: [], next: address, previous: null }, readTurn).next).toBe("cD0y=");
    expect(cursorOf("bare")).toBe("bare");
    expect(cursorOf(null)).toBeNull();
  });
});

describe("follow", () => {
  it("keeps turns in order, whichever page comes first", () => {
    const state = stateAfter(page("b", [turn("v3", 5)]), page(null, [turn("v1", 1), turn("v2", 3)], "b"));
    expect(state.turns.map((one) => one.id)).toEqual(["v1", "v2", "v3"]);
  });

  it("fetches the page of a graded turn again, and the last page for a new one", () => {
    const loaded = stateAfter(page(null, [turn("v1", 1)], "b"), page("b", [turn("v2", 3)]));
    expect(follow(loaded, { type: "turn.graded", message_id: "v1" }).stale).toEqual([null]);
    const accepted: TranscriptEvent = {
      type: "message.accepted",
      client_id: "c",
      message: message({ id: "v9", seq: 9 }),
    };
    expect(follow(loaded, accepted).stale).toEqual(["b"]);
  });

  it("goes on to the next page when the last one overflows", () => {
    const loaded = stateAfter(page(null, [turn("v1", 1)]));
    const again: TranscriptEvent = {
      type: "page.loaded",
      page: { results: [turn("v1", 1)], next: "b", notes: [] },
      cursor: null,
      isAgain: true,
    };
    expect(follow(loaded, again).stale).toEqual(["b"]);
  });

  it("streams a reply, leaves out what does not fit, and takes the finished text", () => {
    const running = stateAfter(
      page(null, [turn("v1", 1)]),
      { type: "reply.started", message_id: "r1", parent: "v1" },
      { type: "reply.delta", message_id: "r1", offset: 0, text: "Yes." },
      { type: "reply.delta", message_id: "r1", offset: 30, text: "lost before" },
    );
    expect(running.turns[0]?.replies[0]).toMatchObject({ text: "Yes.", status: "running" });
    const ended = message({ id: "r1", kind: "reply", parent: "v1", text: "Yes. It is." });
    const state = follow(running, { type: "reply.finished", message: ended, sha256: "" });
    expect(state.turns[0]?.replies[0]).toMatchObject({ text: "Yes. It is.", status: "complete" });
    expect(state.stale).toEqual([null]);
  });

  it("keeps what streamed when an older stored copy is fetched", () => {
    const running = stateAfter(
      page(null, [turn("v1", 1)]),
      { type: "reply.started", message_id: "r1", parent: "v1" },
      { type: "reply.delta", message_id: "r1", offset: 0, text: "Yes, and" },
    );
    const stored = {
      ...turn("v1", 1),
      replies: readTurn(WIRE_TURN).replies.map((one) => ({ ...one, status: "running", text: "" })),
    };
    const state = follow(running, page(null, [stored]));
    expect(state.turns[0]?.replies[0]?.text).toBe("Yes, and");
  });

  it("loads everything again when something may have been missed", () => {
    const loaded = stateAfter(page(null, [turn("v1", 1)], "b"), page("b", [turn("v2", 3)]));
    expect(follow(loaded, { type: "topic.resync" }).stale.toSorted()).toEqual([null, "b"].toSorted());
  });
});

describe("what staff wrote before the visitor", () => {
  const empty = readTurnPage({ results: [], next: null, previous: null, notes: WIRE_TURN.notes });

  it("is shown until there is a turn that it stands at", () => {
    const before = follow(NOTHING_YET, { type: "page.loaded", page: empty, cursor: null, isAgain: false });
    expect(before.notes.map((note) => note.text)).toEqual(["I am here"]);
    expect(follow(before, page(null, [turn("a", 1)])).notes).toEqual([]);
  });
});

describe("an erasure", () => {
  it("leaves nothing on a page that is open", () => {
    const loaded = follow(NOTHING_YET, {
      type: "page.loaded",
      page: { results: [turn("a", 1)], next: "c", notes: [] },
      cursor: null,
      isAgain: false,
    });
    expect(follow(loaded, { type: "conversation.erased" })).toEqual({ ...NOTHING_YET, isLoaded: true });
  });
});

describe("evidence", () => {
  const judgement = (evidence: readonly [number, number] | null): Judgement => ({
    criterionId: "a",
    level: 1,
    noneReason: "",
    evidence,
    isQuoteUnfound: false,
  });

  it("is marked by code points, overlaps joined", () => {
    const pieces = piecesOf("a🫖bcd", [judgement([1, 3]), judgement([2, 4]), judgement(null)]);
    expect(pieces).toEqual([
      { text: "a", isQuoted: false },
      { text: "🫖bc", isQuoted: true },
      { text: "d", isQuoted: false },
    ]);
  });

  it("outside the text is no quote", () => {
    expect(quoteOf("short", [2, 50])).toBeNull();
    expect(piecesOf("short", [judgement([3, 2]), judgement([-1, 2])])).toEqual([{ text: "short", isQuoted: false }]);
  });
});
