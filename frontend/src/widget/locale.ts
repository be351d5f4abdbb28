// In which of our languages the page speaks, and from which side it reads. Called once by `prepare.ts` before it draws.

import { speak, type Table } from "../i18n";

/** Every language that the panel's own words exist in, with the file of its words (English is in the code). */
const LANGUAGES: Readonly<Record<string, () => Promise<Table>>> = {
  en: async () => ({}),
  ar: async () => (await import("./texts/ar")).AR,
};

const RIGHT_TO_LEFT = /^(?:ar|dv|fa|he|ku|ps|sd|ug|ur|yi)\b/i;

export function directionOf(locale: string): "rtl" | "ltr" {
  return RIGHT_TO_LEFT.test(locale) ? "rtl" : "ltr";
}

function languageOf(locale: string): string {
  return locale.toLowerCase().split(/[-_]/, 1)[0] ?? "";
}

/**
 * The first of the visitor's languages that the site speaks and that we have words for; else the site's first one that we
 * have words for; else English. A site that names no languages speaks all of ours.
 */
export function chooseLocale(site: readonly string[], visitor: readonly string[]): string {
  const ours = site.length === 0 ? Object.keys(LANGUAGES) : site.filter((locale) => languageOf(locale) in LANGUAGES);
  for (const wanted of visitor) {
    if (ours.some((locale) => languageOf(locale) === languageOf(wanted))) return wanted;
  }
  return ours.find(() => site.length > 0) ?? "en";
}

/** Fetches the words and turns the page around where they read from the right. Without them it stays English. */
export async function speakIn(locale: string): Promise<void> {
  const root = document.documentElement;
  try {
    const words = (await LANGUAGES[languageOf(locale)]?.()) ?? {};
    speak(locale, words);
    root.lang = locale;
    root.dir = directionOf(locale);
  } catch {
    root.lang = "en"; // the file did not come: English words, read from the left
    root.dir = "ltr";
  }
}
