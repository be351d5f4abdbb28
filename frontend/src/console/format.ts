// Numbers and times as staff read them.

/** A share as whole percent; null = not known. */
export function percent(share: number | null): string {
  return share === null ? "not known" : `${Math.round(share * 100)} %`;
}

export function level(value: number | null): string {
  return value === null ? "–" : value.toFixed(2);
}

export function duration(ms: number | null): string {
  if (ms === null) return "";
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** Local date and time of an ISO timestamp; an empty or broken one stays out of sight. */
export function moment(iso: string): string {
  const at = new Date(iso);
  if (iso === "" || Number.isNaN(at.getTime())) return "";
  return new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" }).format(at);
}

const SENTENCES: Readonly<Record<string, string>> = {
  crisis: "Possible crisis",
  screen_down: "The crisis screen did not answer",
  blocked: "A reply was withheld by the safety check",
};

/** What an alert or an ending says to people; a code that is new here is read out as words. */
export function sentence(code: string): string {
  return SENTENCES[code] ?? words(code);
}

/** Words of a code for people: `turn_limit` reads "turn limit". */
export function words(code: string): string {
  return code.replaceAll("_", " ");
}
