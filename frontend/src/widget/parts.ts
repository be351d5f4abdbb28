// What the page fetches only when somebody needs it. Everything that helps in a crisis is in the first file, never here.

import { later } from "../shared/later";
import { PlainText } from "../shared/Text";
import { learn } from "../texts";
import type { EndPanelProps } from "./EndPanel";
import type { ReplyActionsProps } from "./ReplyActions";
import type { SettingsProps } from "./Settings";

/** Fetched when the first answer has ended: how it is laid out, and what one can do with it. */
export const formatted = later<{ readonly text: string }>(
  async () => (await import("./answer")).MarkdownText,
  PlainText,
);
export const actions = later<ReplyActionsProps>(async () => (await import("./answer")).ReplyActions);

/** What codes mean, asked for when the first one comes up. */
export const sentences = async () => learn((await import("../sentences")).SENTENCES);

/** The check of a finished answer's text. */
export const hashing = async () => (await import("./answer")).sha256;

/** What is read aloud of an answer, with the words for its failures. */
export const listening = async () => (await Promise.all([import("./answer"), sentences()]))[0].heard;

export const settings = later<SettingsProps>(async () => (await import("./sheets")).Settings);
/** What stands under a chat that has ended. */
export const ending = later<EndPanelProps>(async () => (await import("./sheets")).EndPanel);

/** Fetches the rest in a quiet moment, so that it is there when the line is not. */
export function fetchTheRest(): void {
  const fetchAll = () => {
    for (const load of [actions.load, settings.load, sentences]) load().catch(() => undefined);
  };
  if ("requestIdleCallback" in window) window.requestIdleCallback(fetchAll, { timeout: 5_000 });
  else setTimeout(fetchAll, 1_000);
}
