// What the one polite status region says when the state changes: two announcements for an answer at most, unless the visitor
// chose to hear each sentence. Pure. What is said of an answer itself is in `reading.ts`.

import type { ChatState } from "../conversation";
import { t } from "../i18n";
import { findRow, hasEnded, type Row } from "../rows";
import { errorSentence } from "../texts";
import { isAwaitingReply, runningReply } from "../timeline";

export type Reading = "answers" | "sentences";

const KNOWN_AT_ONCE = 3; // more than this many ended rows at once are a history, which is read and not announced

/** What others wrote that has its whole text now; nothing where a page has only just learned of a conversation. */
export function newlyEnded(before: ChatState, after: ChatState): readonly Row[] {
  if (!before.conversation || after.rows === before.rows) return [];
  const ended = after.rows.filter((row) => {
    if (row.kind === "visitor" || !hasEnded(row)) return false;
    const known = findRow(before.rows, row.id);
    return !known || !hasEnded(known);
  });
  return ended.length <= KNOWN_AT_ONCE ? ended : [];
}

/** Whether `heard` may have something to say of an answer. */
export function isHeard(before: ChatState, after: ChatState, reading: Reading): boolean {
  const isGrowing = reading === "sentences" && after.rows !== before.rows && runningReply(after) !== undefined;
  return isGrowing || newlyEnded(before, after).length > 0;
}

/** What can be said at once; null = nothing. */
export function announcementOf(before: ChatState, after: ChatState): string | null {
  if (after.card && !after.card.isAcknowledged && before.card?.level !== after.card.level) {
    return t("Support lines are shown at the top of the chat. They are answered by people.");
  }
  if (after.error && after.error !== before.error) return errorSentence(after.error.code, after.error.retryAfterS);
  if (isAwaitingReply(after) && !isAwaitingReply(before) && before.conversation) return t("The AI is answering.");
  return null;
}
