// A reply's text cut into pieces, so that what the judge quoted can be marked. Pure; spans count code points.

import type { Judgement } from "./turns";

export interface Piece {
  readonly text: string;
  readonly isQuoted: boolean;
}

type Span = readonly [number, number];

function isWithin(span: Span, length: number): boolean {
  return span[0] >= 0 && span[0] < span[1] && span[1] <= length;
}

/** null where the span does not lie in the text (the text shown may be the redacted one). */
export function quoteOf(text: string, span: Span | null): string | null {
  if (span === null) return null;
  const points = Array.from(text);
  return isWithin(span, points.length) ? points.slice(span[0], span[1]).join("") : null;
}

export function piecesOf(text: string, judgements: readonly Judgement[]): readonly Piece[] {
  const points = Array.from(text);
  const quoted = new Array<boolean>(points.length).fill(false);
  for (const { evidence } of judgements) {
    if (evidence && isWithin(evidence, points.length)) quoted.fill(true, evidence[0], evidence[1]);
  }
  const pieces: { text: string; isQuoted: boolean }[] = [];
  points.forEach((point, at) => {
    const isQuoted = quoted[at] ?? false;
    const last = pieces.at(-1);
    if (last && last.isQuoted === isQuoted) last.text += point;
    else pieces.push({ text: point, isQuoted });
  });
  return pieces;
}
