// Colours that can be read: WCAG contrast, and an accent moved until it can be. Pure; the server refuses an operator's accent
// by the same rule (`chat/theme.py`), a host page's is fitted here.

/** What WCAG asks of text of ordinary size. */
export const MIN_CONTRAST = 4.5;

type Rgb = readonly [number, number, number];

function rgbOf(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function hexOf(rgb: Rgb): string {
  return `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}

/** Relative luminance of `#rrggbb`, 0 to 1. */
export function luminance(hex: string): number {
  const linear = (part: number) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const [red, green, blue] = rgbOf(hex);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** 1 (the same) to 21 (black on white). */
export function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].toSorted((left, right) => left - right);
  return (high + 0.05) / (low + 0.05);
}

/** The colour between two; `share` 0 is all of the first, 1 all of the second. */
export function mixed(from: string, to: string, share: number): string {
  const [a, b] = [rgbOf(from), rgbOf(to)];
  const part = (at: 0 | 1 | 2) => a[at] + (b[at] - a[at]) * share;
  return hexOf([part(0), part(1), part(2)]);
}

/** The accent itself where it can be read on all grounds, else the nearest one towards black or white that can. */
export function fitted(accent: string, grounds: readonly string[], towards: "#000000" | "#ffffff"): string {
  for (let percent = 0; percent < 100; percent += 1) {
    const candidate = mixed(accent, towards, percent / 100);
    if (grounds.every((ground) => contrast(candidate, ground) >= MIN_CONTRAST)) return candidate;
  }
  return towards;
}

/** White or black, whichever can be read better on the colour: one of them always reaches 4.5. */
export function inkOn(color: string): string {
  return contrast(color, "#ffffff") >= contrast(color, "#000000") ? "#ffffff" : "#000000";
}
