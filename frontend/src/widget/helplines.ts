// Helplines by country and the links to reach them. Pure: it works from the page's own data, without a connection.

import { t } from "../i18n";
import type { Resource } from "../protocol";

/** What a visitor can choose from; "" stands for every other country and comes last. */
export function countriesOf(helplines: readonly Resource[]): readonly string[] {
  const countries = [...new Set(helplines.map((line) => line.country))];
  return countries.toSorted((a, b) => Number(a === "") - Number(b === "") || a.localeCompare(b));
}

export function countryName(country: string, locale: string): string {
  if (country === "") return t("Another country");
  try {
    return new Intl.DisplayNames([locale], { type: "region" }).of(country) ?? country;
  } catch {
    return country; // not an ISO code: the operator's own word for it
  }
}

/** The country to begin with: the site's, else the region of the browser's language, else the lines for everywhere. */
export function firstCountry(
  countries: readonly string[],
  wanted: { site: string; languages: readonly string[] },
): string {
  // A language alone names no country: "ar" is Arabic and not Argentina.
  const regions = wanted.languages.map((language) => /-([A-Za-z]{2})$/.exec(language)?.[1]?.toUpperCase() ?? "");
  const known = [wanted.site, ...regions].filter((country) => country !== "");
  return known.find((country) => countries.includes(country)) ?? countries.at(-1) ?? "";
}

/** The lines of a country, then the directories that serve everywhere (not their list of emergency numbers). */
export function linesFor(helplines: readonly Resource[], country: string): readonly Resource[] {
  const own = helplines.filter((line) => line.country === country);
  return country === "" ? own : [...own, ...helplines.filter((line) => line.country === "" && line.url !== "")];
}

export function telLink(phone: string): string | null {
  const number = phone.replace(/[^\d+*#]/g, "");
  return /\d{2}/.test(number) ? `tel:${number}` : null;
}

/** "SHOUT to 85258" and "85258" both become a text message; a word in capitals before the number is its content. */
export function smsLink(text: string): string | null {
  const number = /(\+?\d[\d ]{2,})(?!.*\d)/.exec(text)?.[1]?.replaceAll(" ", "");
  if (number === undefined) return null;
  const word = /\b[A-Z]{2,}\b/.exec(text)?.[0];
  return word === undefined ? `sms:${number}` : `sms:${number}?&body=${encodeURIComponent(word)}`;
}

/** Only web addresses become links: the table is edited by people, and `javascript:` is an address too. */
export function webLink(url: string): string | null {
  try {
    const { protocol, href } = new URL(url);
    return protocol === "https:" || protocol === "http:" ? href : null;
  } catch {
    return null;
  }
}
