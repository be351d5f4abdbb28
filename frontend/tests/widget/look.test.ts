// The three knobs: whatever accent is asked for, its text can be read.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contrast, fitted, inkOn, luminance, MIN_CONTRAST, mixed } from "../../src/shared/contrast";
import { propertiesOf } from "../../src/widget/look";

const color = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, "0")}`);
const GROUNDS = { light: ["#ffffff", "#f6f7f5"], dark: ["#1a2221", "#121817"] };

describe("contrast", () => {
  it("is what WCAG says", () => {
    expect(contrast("#000000", "#ffffff")).toBeCloseTo(21, 5);
    expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
    expect(contrast("#ffffff", "#767676")).toBeCloseTo(4.54, 2);
    expect(luminance("#ffffff")).toBeCloseTo(1, 9);
  });

  it("mixes from one colour to the other", () => {
    expect(mixed("#000000", "#ffffff", 0)).toBe("#000000");
    expect(mixed("#000000", "#ffffff", 0.5)).toBe("#808080");
    expect(mixed("#102030", "#ffffff", 1)).toBe("#ffffff");
  });
});

describe("an accent", () => {
  it("that can be read is left as it is", () => {
    expect(fitted("#17696a", GROUNDS.light, "#000000")).toBe("#17696a");
    expect(propertiesOf({ accent: "#17696a", radius: null })["--accent-light"]).toBe("#17696a");
  });

  it("that cannot is moved until it can", () => {
    const yellow = fitted("#ffd400", GROUNDS.light, "#000000");
    expect(yellow).not.toBe("#ffd400");
    expect(contrast(yellow, "#f6f7f5")).toBeGreaterThanOrEqual(MIN_CONTRAST);
  });

  it("can be read on every ground, in light and dark, and so can the text on it, whatever it is", () => {
    fc.assert(
      fc.property(color, (accent) => {
        const found = propertiesOf({ accent, radius: 8 });
        for (const [name, grounds] of Object.entries(GROUNDS)) {
          const shown = found[`--accent-${name}`] ?? "";
          for (const ground of [...grounds, found[`--accent-soft-${name}`] ?? ""]) {
            expect(contrast(shown, ground)).toBeGreaterThanOrEqual(MIN_CONTRAST);
          }
          expect(contrast(shown, found[`--on-accent-${name}`] ?? "")).toBeGreaterThanOrEqual(MIN_CONTRAST);
        }
      }),
    );
  });

  it("has ink that can be read on it", () => {
    expect(inkOn("#ffd400")).toBe("#000000");
    expect(inkOn("#17696a")).toBe("#ffffff");
  });

  it("is one of the knobs; the radius is another, and nothing is set that nobody asked for", () => {
    expect(propertiesOf({ accent: null, radius: 4 })).toEqual({ "--radius": "4px" });
    expect(propertiesOf({ accent: null, radius: null })).toEqual({});
  });
});
