// The page's own words in the visitor's language. The English sentence is the key, so English costs no table; another
// language is a table of its own (`widget/texts/`), loaded before the first drawing. The staff's pages stay English.

export type Table = Readonly<Record<string, string>>;

let table: Table = {};
let language = "en";

/** Called once before anything is drawn (tests call it again). */
export function speak(locale: string, words: Table): void {
  language = locale;
  table = words;
}

/** The locale for numbers, dates and names of countries. */
export function spokenLocale(): string {
  return language;
}

/** `t("{name} is writing", { name })`: a sentence in the visitor's language; English where there is no translation. */
export function t(english: string, values: Readonly<Record<string, string | number>> = {}): string {
  const said = table[english] ?? english;
  return said.replace(/\{(\w+)\}/g, (hole, name: string) => String(values[name] ?? hole));
}

/** A time span with its unit in the right number: "1 second", "24 seconds". */
export function inUnit(count: number, unit: "second" | "minute"): string {
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long" }).format(count);
}

export function inDigits(count: number): string {
  return count.toLocaleString(language);
}
