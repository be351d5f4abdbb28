// The few words that the loader itself says to a visitor. Everything else is said by the panel.

const FAILED: Readonly<Record<string, string>> = {
  en: "The chat does not load. Please try again later. In danger? Call an emergency number.",
  de: "Der Chat lädt nicht. Bitte versuchen Sie es später. In Gefahr? Rufen Sie den Notruf.",
};

/** What stands beside the launcher where the chat does not come. */
export function failedText(locale: string): string {
  return FAILED[locale.slice(0, 2)] ?? (FAILED.en as string);
}
