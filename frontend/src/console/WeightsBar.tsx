// What mattered in a turn: the three weights as one stacked bar, each with its name and number in words as well.

import { percent } from "./format";
import { DIMENSIONS, type Dimension, type PerDimension } from "./turns";

export const NAMES: Readonly<Record<Dimension, string>> = {
  cognitive: "Cognitive",
  affective: "Affective",
  proactive: "Proactive",
};

export function WeightsBar({ weights }: { readonly weights: PerDimension }) {
  const inWords = DIMENSIONS.map((dimension) => `${NAMES[dimension]} ${percent(weights[dimension])}`).join(", ");
  return (
    <div class="weights">
      <div class="weights-bar" role="img" aria-label={`Priorities: ${inWords}`}>
        {DIMENSIONS.map((dimension) => (
          <span
            key={dimension}
            class={`weight ${dimension}`}
            style={{ flexGrow: String(Math.max(0, weights[dimension] ?? 0)) }}
          />
        ))}
      </div>
      <ul class="weights-key">
        {DIMENSIONS.map((dimension) => (
          <li key={dimension}>
            <span class={`swatch ${dimension}`} aria-hidden="true" />
            {NAMES[dimension]} <strong>{percent(weights[dimension])}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}
