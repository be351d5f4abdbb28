// What must be settled before the first drawing: language, direction and look. Called by whoever draws the panel.

import type { Knobs } from "../hostlink";
import { applyTheme, keptTheme } from "../shared/theme";
import type { ChatConfig } from "./config";
import { chooseLocale, speakIn } from "./locale";

/** What the embedding page asks for; it goes before what the site says. */
export interface Wishes {
  readonly knobs: Knobs;
  /** "" = none. */
  readonly locale: string;
}

const NO_WISHES: Wishes = { knobs: { accent: null, radius: null, scheme: null }, locale: "" };

/** A phone's keyboard covers the page without making it smaller (iOS): the page takes the height that is left. */
function followKeyboard(): void {
  const seen = window.visualViewport;
  seen?.addEventListener("resize", () => {
    const isZoomed = seen.scale !== 1;
    document.documentElement.style.setProperty("--page-height", isZoomed ? "" : `${seen.height}px`);
    if (!isZoomed && seen.offsetTop > 0) window.scrollTo(0, 0);
  });
}

export async function prepare(config: ChatConfig, wishes: Wishes = NO_WISHES): Promise<void> {
  followKeyboard();
  const { theme, locales } = config;
  const accent = wishes.knobs.accent ?? theme.accent;
  const radius = wishes.knobs.radius ?? theme.radius;
  const own = keptTheme(); // the visitor's own choice between light and dark goes before everybody's
  applyTheme(own === "auto" ? (wishes.knobs.scheme ?? theme.scheme ?? "auto") : own);
  const wanted = wishes.locale === "" ? navigator.languages : [wishes.locale, ...navigator.languages];
  const look = accent === null && radius === null ? null : import("./look");
  await Promise.all([
    speakIn(chooseLocale(locales, wanted)),
    look?.then(
      ({ applyLook }) => applyLook({ accent, radius }),
      () => undefined, // the product's own look will do
    ),
  ]);
}
