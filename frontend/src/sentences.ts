// What codes, places in line and stops mean, as sentences for people: a later file of the visitor's page (`texts.ts` asks for
// it when the first one comes up), part of the staff's pages from the start. Codes come from `chat/protocol.py` and the
// engine's errors.

import { inUnit, t } from "./i18n";
import { CLOSE_MALFORMED } from "./protocol";
import type { StopReason } from "./socket";
import type { Sentences } from "./texts";

const ERRORS: Readonly<Record<string, string>> = {
  malformed: "The page sent something that the server did not understand. Reloading the page should help.",
  unknown_event: "This page is older than the server. Please reload it.",
  binary: "The page sent something that the server did not understand. Reloading the page should help.",
  too_large: "That message is too large to send.",
  empty_text: "There is nothing to send yet.",
  text_invalid: "That message holds characters that cannot be stored. Please remove them and send it again.",
  text_too_long: "That message is too long. The limit is 8,000 characters.",
  closed: "This chat has ended. You can start a new one.",
  rate: "You are sending faster than the chat can follow.",
  not_found: "That is no longer there.",
  not_running: "The answer had already ended.",
  busy: "An answer is still being written. Please wait until it has ended, or stop it.",
  budget: "This site's chat has used up what it may answer today. Please come back tomorrow.",
  token: "Your access to this chat has run out. Reloading the page starts a new one.",
  hello_first: "The connection was not ready yet. Please try again.",
  identity_required: "This chat needs a sign-in on the site that it belongs to.",
  identity_invalid: "The sign-in of the site was not accepted. Please sign in there again.",
  erasure_refused:
    "Your data could not be deleted safely, and nothing was changed. Please write to the people who run this site.",
};

const FAILURES: Readonly<Record<string, string>> = {
  engine_unreachable: "The AI could not be reached.",
  engine_refused: "The AI could not take this message.",
  engine_broken: "The AI broke off in the middle of its answer.",
  timeout_connect: "The AI could not be reached in time.",
  timeout_first_token: "The AI took too long to begin.",
  timeout_between_tokens: "The AI fell silent in the middle of its answer.",
  timeout_whole: "The answer took too long and was cut off.",
  overloaded: "Too many people are chatting right now. Your message is kept; it has no answer yet.",
  budget: "This site's chat has used up what it may answer today. Your message is kept.",
  interrupted: "The answer was interrupted.",
  blocked: "The answer was ended by the safety check.",
  busy: "Another answer of yours is still being written.",
  internal: "Something went wrong while the answer was written.",
};

const STOPS: Readonly<Record<StopReason, string>> = {
  malformed: "This page and the server no longer understand each other ({code}).",
  token: "Your access to this chat has run out.",
  origin: "This page is not allowed to open the chat.",
  replaced: "This chat is open in another tab.",
};

function durationText(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 60) return inUnit(whole, "second");
  return t("about {time}", { time: inUnit(Math.round(whole / 60), "minute") });
}

function withTime(said: string, english: string, seconds: number): string {
  return seconds <= 0 ? said : `${said} ${t(english, { time: durationText(seconds) })}`;
}

function known(sentence: string | undefined): string | null {
  return sentence === undefined ? null : t(sentence);
}

export const SENTENCES: Sentences = {
  error: (code) => known(ERRORS[code]),
  after: (said, seconds) => withTime(said, "You can go on in {time}.", seconds),
  failure: (code) => known(FAILURES[code]),
  wait: (place, seconds) => {
    const who = place <= 1 ? t("You are next.") : t("You are number {place} in line.", { place });
    return withTime(who, "It should begin in {time}.", seconds);
  },
  notice: (kind, name) => {
    if (kind === "version") return t("The AI was updated. Its answers may sound a little different from here on.");
    if (kind === "model") return t("You are talking to the AI again.");
    return t("{name} from the team has joined. The AI is paused.", { name: name ?? t("Somebody") });
  },
  stop: (reason) => t(STOPS[reason], { code: CLOSE_MALFORMED }),
};
