// The site's look: three knobs, kept readable. In a file of its own that only sites with a look of theirs fetch.

import type { Knobs } from "../hostlink";
import { fitted, inkOn, mixed } from "../shared/contrast";

/** What the accent stands on, as `shared/base.css` has it. */
const LIGHT = { surface: "#ffffff", grounds: ["#ffffff", "#f6f7f5"], towards: "#000000" } as const;
const DARK = { surface: "#1a2221", grounds: ["#1a2221", "#121817"], towards: "#ffffff" } as const;

/** The custom properties of an accent, for light and for dark. Pure. */
export function propertiesOf(knobs: Pick<Knobs, "accent" | "radius">): Readonly<Record<string, string>> {
  const { accent, radius } = knobs;
  const found: Record<string, string> = radius === null ? {} : { "--radius": `${radius}px` };
  if (accent === null) return found;
  for (const [name, { surface, grounds, towards }] of Object.entries({ light: LIGHT, dark: DARK })) {
    // The soft tint stands behind the accent too (a pressed button), so the accent must be read on it as well.
    const soft = mixed(surface, accent, 0.12);
    const color = fitted(accent, [...grounds, soft], towards);
    found[`--accent-${name}`] = color;
    found[`--on-accent-${name}`] = inkOn(color);
    found[`--accent-soft-${name}`] = soft;
  }
  return found;
}

export function applyLook(knobs: Pick<Knobs, "accent" | "radius">): void {
  const { style } = document.documentElement;
  for (const [name, value] of Object.entries(propertiesOf(knobs))) style.setProperty(name, value);
}
