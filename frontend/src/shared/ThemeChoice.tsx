// The visitor's own choice between light, dark and what the device says.

import { useState } from "preact/hooks";
import { t } from "../i18n";
import { write } from "./local";
import { applyTheme, keptTheme, THEME_KEY, type Theme } from "./theme";

const CHOICES: readonly (readonly [Theme, string])[] = [
  ["auto", "Like my device"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function ThemeChoice() {
  const [theme, setTheme] = useState(keptTheme);
  const choose = (next: Theme) => {
    setTheme(next);
    applyTheme(next);
    write(THEME_KEY, next === "auto" ? null : next);
  };
  return (
    <fieldset class="theme">
      <legend>{t("Appearance")}</legend>
      {CHOICES.map(([value, label]) => (
        <label key={value} class="theme-choice">
          <input type="radio" name="theme" checked={theme === value} onChange={() => choose(value)} />
          <span>{t(label)}</span>
        </label>
      ))}
    </fieldset>
  );
}
