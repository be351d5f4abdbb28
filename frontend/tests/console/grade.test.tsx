// @vitest-environment happy-dom
// A grade is never shown without who gave it and what is known of that judge.

import { render } from "preact";
import { describe, expect, it } from "vitest";
import { ReplyCard, Reward } from "../../src/console/ReplyCard";
import type { Reply, Score } from "../../src/console/turns";

const NOTHING_KNOWN = "no human evidence yet (0 of 200 labelled pairs)";
const SCORE: Score = {
  judge: "judge-0123456789ab",
  implementation: "encoder",
  humanEvidence: NOTHING_KNOWN,
  reward: 0.72,
  isPartial: false,
  byDimension: { cognitive: 0.7, affective: 0.75, proactive: 0.5 },
  judgements: [{ criterionId: "a1", level: 0.81, noneReason: "", evidence: [5, 18], isQuoteUnfound: false }],
};

function shown(score: Score | null): string {
  const place = document.createElement("div");
  render(<Reward score={score} />, place);
  return place.textContent ?? "";
}

describe("a grade", () => {
  it("says which judge gave it and what is known of it", () => {
    expect(shown(SCORE)).toContain("0.72");
    expect(shown(SCORE)).toContain(`graded by the encoder judge judge-0123456789ab: ${NOTHING_KNOWN}`);
  });

  it("says so as well where there is no reward", () => {
    const partial = shown({ ...SCORE, reward: null, isPartial: true });
    expect(partial).toContain("partly graded");
    expect(partial).toContain(NOTHING_KNOWN);
  });

  it("names no judge where nobody graded", () => {
    expect(shown(null)).toBe("Not graded yet");
  });

  it("marks the judge's evidence in the reply", () => {
    const place = document.createElement("div");
    const reply: Reply = {
      ...{ id: "r1", seq: 2, status: "complete", text: "That sounds tiring 🫖.", code: "", policy: "policy-1" },
      ...{ isSelected: true, siblingIndex: 0, firstTokenMs: null, totalMs: null, tokens: null, feedback: 0 },
      score: SCORE,
    };
    render(<ReplyCard reply={reply} />, place);
    expect([...place.querySelectorAll("mark")].map((mark) => mark.textContent)).toEqual(["sounds tiring"]);
  });
});
