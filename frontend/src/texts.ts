// Codes, waits and stops as sentences for people, one place for visitor and staff pages: the few that must be there without
// a line, and from `sentences.ts` all others once that file is there.

import { t } from "./i18n";
import type { StopReason } from "./socket";

export interface Sentences {
  error(code: string): string | null;
  /** An error's sentence with the time after which one may go on. */
  after(said: string, seconds: number): string;
  failure(code: string): string | null;
  wait(place: number, seconds: number): string;
  stop(reason: StopReason): string;
  notice(kind: "version" | "human" | "model", name: string | null): string;
}

const AT_HAND: Readonly<Record<string, string>> = {
  unavailable: "The service is not available right now. Nothing you wrote is lost. Please try again in a moment.",
  offline: "There is no connection right now. Please try again when you are back online.",
};

let known: Sentences | null = null;

/** Takes in the rest of the sentences. */
export function learn(sentences: Sentences): void {
  known = sentences;
}

/** Whether a code still says no more than that something went wrong. */
export function isUnknown(code: string): boolean {
  return known === null && AT_HAND[code] === undefined;
}

export function errorSentence(code: string, retryAfterS: number | null): string {
  const said = known?.error(code) ?? t(AT_HAND[code] ?? "Something went wrong. Please try again.");
  return known?.after(said, retryAfterS ?? 0) ?? said;
}

export function failureSentence(code: string | null): string {
  return known?.failure(code ?? "") ?? t("The answer could not be finished.");
}

/** "" until the sentences are there. */
export function waitText(place: number, expectedWaitS: number): string {
  return known?.wait(place, expectedWaitS) ?? "";
}

/** "" until the sentences are there. */
export function stopSentence(reason: StopReason): string {
  return known?.stop(reason) ?? "";
}

/** "" until the sentences are there. */
export function noticeText(kind: "version" | "human" | "model", name: string | null): string {
  return known?.notice(kind, name) ?? "";
}
