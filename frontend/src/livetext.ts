// The text of a running reply: deltas are applied only where they fit. Used by `conversation.ts` and the staff's live view.
// Offsets count Unicode code points, as the server counts them; JavaScript's own indices count UTF-16 units.

import { codePoints } from "./protocol";

/** `points` is the length of `text` in code points, kept so that a delta costs its own length and not the reply's. */
export interface LiveText {
  readonly text: string;
  readonly points: number;
}

export function liveText(text: string): LiveText {
  return { text, points: codePoints(text) };
}

function withoutPoints(text: string, points: number): string {
  let at = 0;
  for (let dropped = 0; dropped < points && at < text.length; dropped += 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(at);
}

/** The text with the delta added where it fits; what overlaps is dropped; null where something before it is missing. */
export function applyDelta(live: LiveText, offset: number, text: string): LiveText | null {
  if (offset > live.points) return null;
  const fresh = withoutPoints(text, live.points - offset);
  return fresh === "" ? live : { text: live.text + fresh, points: live.points + codePoints(fresh) };
}
