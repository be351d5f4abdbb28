// Every name that a host page may use. `docs/widget.md` describes each; a test holds the two together.

export const VERBS = ["init", "open", "close", "toggle", "identify", "reset", "destroy", "on", "off"] as const;
export type Verb = (typeof VERBS)[number];

export const EVENTS = ["ready", "open", "close", "unread", "message", "reset", "error"] as const;
export type EventName = (typeof EVENTS)[number];

/** The first three are the loader's own; the others come from the panel, which also says in the console what to do. */
export const ERRORS = [
  "call_invalid",
  "option_invalid",
  "unreachable",
  "origin_not_allowed",
  "unknown_site",
  "identity_required",
  "identity_invalid",
] as const;
export type ErrorCode = (typeof ERRORS)[number];

/** What each option may be, as text: the same in a `data-` attribute and in `init`. */
export const OPTIONS = {
  site: /^[\w-]{1,50}$/,
  position: /^(left|right)$/,
  accent: /^#[\da-f]{6}$/i,
  radius: /^([12]?\d|3[0-2])$/,
  scheme: /^(light|dark|auto)$/,
  label: /^.{1,60}$/,
  locale: /^[a-z]{2,3}(-[a-z\d]{2,8})*$/i,
  zIndex: /^\d{1,10}$/,
  launcher: /^(shown|hidden)$/,
} as const;
export type OptionName = keyof typeof OPTIONS;
export type Options = { readonly [name in OptionName]?: string };
