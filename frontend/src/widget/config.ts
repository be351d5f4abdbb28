// What the host page tells the chat: mount attributes and the JSON in `#rapport-config`. Read once at start by `main.ts`.

import { type Knobs, SCHEMES, type Scheme } from "../hostlink";
import { asObject, flagOr, type JsonObject, listOf, numberOrNull, textOr, textOrNull } from "../json";
import { type Resource, readResource } from "../protocol";

export interface ChatConfig {
  readonly site: string;
  readonly siteName: string;
  /** ISO country whose helplines come first; "" = the page does not know. */
  readonly country: string;
  readonly helplines: readonly Resource[];
  /** When the operator last checked the helplines, as the operator wrote it. */
  readonly helplinesChecked: string;
  readonly modelName: string;
  readonly isDemoModel: boolean;
  readonly greeting: string;
  readonly suggestions: readonly string[];
  readonly privacyUrl: string;
  readonly consentText: string;
  readonly startPath: string;
  readonly socketPath: string;
  readonly apiPath: string;
  /** The languages that the site speaks, its first one first; none = all of ours. */
  readonly locales: readonly string[];
  readonly theme: Knobs;
  /** Origins of the pages that may embed the chat. */
  readonly origins: readonly string[];
}

const NOTHING: JsonObject = {};

function part(from: JsonObject, field: string): JsonObject {
  return from[field] === undefined || from[field] === null ? NOTHING : asObject(from[field], field);
}

function texts(from: JsonObject, field: string): readonly string[] {
  const value = from[field];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

/** By country, as the server groups them. */
function readHelplines(from: JsonObject): readonly Resource[] {
  const byCountry = part(from, "helplines");
  return Object.keys(byCountry).flatMap((country) =>
    listOf(byCountry, country, (line) => readResource({ ...line, country: line.country ?? country })),
  );
}

function readScheme(from: JsonObject): Scheme | null {
  const scheme = textOrNull(from, "scheme");
  return SCHEMES.find((known) => known === scheme) ?? null;
}

function readJson(page: ParentNode): JsonObject {
  const source = page.querySelector("#rapport-config")?.textContent ?? "";
  return source.trim() === "" ? NOTHING : asObject(JSON.parse(source), "rapport-config");
}

/** Throws ShapeError or SyntaxError where the host page's JSON is broken: a fault of the template, said loudly. */
export function readConfig(mount: HTMLElement, page: ParentNode): ChatConfig {
  const json = readJson(page);
  const site = part(json, "site");
  const model = part(json, "model");
  const ownTexts = part(json, "texts");
  const theme = part(json, "theme");
  const { dataset } = mount;
  return {
    site: dataset.site ?? textOr(site, "slug", ""),
    siteName: textOr(site, "name", "Support"),
    country: textOr(json, "country", "").toUpperCase(),
    helplines: readHelplines(json),
    helplinesChecked: textOr(json, "helplines_checked", ""),
    modelName: textOr(model, "name", ""),
    isDemoModel: flagOr(model, "is_demo", false),
    greeting: textOr(ownTexts, "greeting", ""),
    suggestions: texts(ownTexts, "suggestions"),
    privacyUrl: textOr(json, "privacy_url", ""),
    consentText: textOr(ownTexts, "consent", ""),
    startPath: dataset.start ?? "/api/chat/start",
    socketPath: dataset.socket ?? "/ws/chat/",
    apiPath: dataset.api ?? "/api/chat/",
    locales: texts(json, "locales"),
    theme: { accent: textOrNull(theme, "accent"), radius: numberOrNull(theme, "radius"), scheme: readScheme(theme) },
    origins: texts(json, "origins"),
  };
}
