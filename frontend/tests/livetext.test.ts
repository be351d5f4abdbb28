import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyDelta, type LiveText, liveText } from "../src/livetext";
import { codePoints } from "../src/protocol";

const anyText = fc.string({ unit: "grapheme", maxLength: 60 });

function deltasOf(text: string, sizes: readonly number[]): { offset: number; text: string }[] {
  const points = Array.from(text);
  const deltas: { offset: number; text: string }[] = [];
  for (let at = 0, turn = 0; at < points.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    deltas.push({ offset: at, text: points.slice(at, at + size).join("") });
    at += size;
  }
  return deltas;
}

describe("applyDelta", () => {
  it("appends what fits", () => {
    expect(applyDelta(liveText("That 🫖"), 6, " helps")).toEqual({ text: "That 🫖 helps", points: 12 });
  });

  it("drops an overlap, counted in code points", () => {
    expect(applyDelta(liveText("a🫖b"), 1, "🫖bc")).toEqual({ text: "a🫖bc", points: 4 });
    expect(applyDelta(liveText("a🫖b"), 0, "a🫖")).toEqual({ text: "a🫖b", points: 3 });
  });

  it("says that something is missing", () => {
    expect(applyDelta(liveText("ab"), 3, "d")).toBeNull();
  });

  it("never makes text that was not written, whatever is lost, doubled or reordered", () => {
    const plan = fc.record({
      text: anyText,
      sizes: fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 }),
      picks: fc.array(fc.nat(40), { maxLength: 60 }),
    });
    fc.assert(
      fc.property(plan, ({ text, sizes, picks }) => {
        const deltas = deltasOf(text, sizes);
        let live: LiveText = liveText("");
        for (const pick of picks) {
          const delta = deltas[pick % Math.max(1, deltas.length)];
          if (delta) live = applyDelta(live, delta.offset, delta.text) ?? live;
          expect(text.startsWith(live.text)).toBe(true);
          expect(live.points).toBe(codePoints(live.text));
        }
        for (const delta of deltas) live = applyDelta(live, delta.offset, delta.text) ?? live;
        expect(live.text).toBe(text);
      }),
    );
  });
});
