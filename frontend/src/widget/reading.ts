// What is read aloud of an answer, in the file that comes with the first finished one: the whole answer once it has ended
// or, where the visitor chose it, each sentence as soon as it is there. Pure.

import type { ChatState } from "../conversation";
import { t } from "../i18n";
import type { MessageView } from "../protocol";
import { findRow } from "../rows";
import { failureSentence } from "../texts";
import { runningReply } from "../timeline";
import { newlyEnded, type Reading } from "./announce";

const SENTENCE_END = /[.!?\u2026\u3002\u061f]["'\u201d\u2019\u00bb)*_]*\s|\n/g;
const ITEM_NUMBER = /^\s*(?:[-*+>]\s+)?\d{1,4}$/;

/** A text without the marks of its layout, which nobody wants to hear. */
export function spoken(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s*(?:#{1,6}|>|[-*+]|```.*)(?:\s|$)/gm, "")
    .replace(/\*{1,3}|`+|__/g, "")
    .trim();
}

/** Where the last finished sentence of a growing text ends; the number before an item of a list ends none. */
export function finishedUpTo(text: string): number {
  let end = 0;
  for (const found of text.matchAll(SENTENCE_END)) {
    if (!ITEM_NUMBER.test(text.slice(end, found.index))) end = found.index + found[0].length;
  }
  return end;
}

function ending(row: MessageView, alreadySaid: number): string | null {
  if (row.kind === "staff") return t("{name} wrote: {text}", { name: row.author ?? t("The team"), text: row.text });
  if (row.kind === "safety") return row.text;
  if (row.status === "complete") return spoken(row.text.slice(alreadySaid)) || null;
  if (row.status === "stopped") return t("The answer was stopped.");
  return failureSentence(row.code);
}

/** What a running answer gained in whole sentences. */
function newSentences(before: ChatState, after: ChatState): string | null {
  const running = runningReply(after);
  if (!running || !before.conversation) return null;
  const from = finishedUpTo(findRow(before.rows, running.id)?.text ?? "");
  return spoken(running.text.slice(from, finishedUpTo(running.text))) || null;
}

/** null = nothing to say. */
export function heard(before: ChatState, after: ChatState, reading: Reading): string | null {
  const last = newlyEnded(before, after).at(-1);
  if (!last) return reading === "sentences" ? newSentences(before, after) : null;
  const saidUpTo = reading === "sentences" ? finishedUpTo(findRow(before.rows, last.id)?.text ?? "") : 0;
  return ending(last, saidUpTo);
}
