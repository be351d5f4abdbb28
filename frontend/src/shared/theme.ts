// Light, dark or as the device says. The choice is kept; `main` of both pages applies it before the first drawing.

import { read } from "./local";

export type Theme = "auto" | "light" | "dark";

export const THEME_KEY = "rapport:theme";

export function keptTheme(): Theme {
  const theme = read(THEME_KEY);
  return theme === "light" || theme === "dark" ? theme : "auto";
}

export function applyTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
