// What the embedding page (`loader/`) and the panel in its iframe (`widget/host.ts`) say to each other by `postMessage`.
// Both sides check window and origin first, then parse here; what is unknown is ignored. Never a text that people wrote.

export type Scheme = "light" | "dark" | "auto";
export const SCHEMES: readonly Scheme[] = ["light", "dark", "auto"];

/** The three knobs of the look; null = the site's own. */
export interface Knobs {
  /** `#rrggbb` in lower case. */
  readonly accent: string | null;
  /** Corner radius in pixels, 0 to 32. */
  readonly radius: number | null;
  readonly scheme: Scheme | null;
}

/** The host site's own id of its visitor with its server's HMAC of it (docs/rest.md). */
export interface Identity {
  readonly id: string;
  readonly signature: string;
}

export type ToPanel =
  /** Answers `hello`; comes again when options or identity change. */
  | {
      readonly type: "setup";
      readonly knobs: Knobs;
      readonly locale: string;
      readonly identity: Identity | null;
      readonly isOpen: boolean;
    }
  | { readonly type: "opened" | "closed" | "reset" };

export type ToHost =
  | { readonly type: "hello" | "ready" | "close" | "forgotten" }
  | { readonly type: "unread"; readonly count: number }
  /** How many messages this panel has sent and received since it was loaded. */
  | { readonly type: "message"; readonly sent: number; readonly received: number }
  /** The sentence is one of ours, for whoever embeds the widget. */
  | { readonly type: "error"; readonly code: string; readonly sentence: string };

/** Marks our messages among those of everybody else on a host page. */
const MARK = { rapport: 1 } as const;

export function sealed<Message extends ToPanel | ToHost>(message: Message): Message & typeof MARK {
  return { ...MARK, ...message };
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(data: unknown): Fields {
  const fields = (typeof data === "object" && data !== null ? data : {}) as Fields;
  return fields.rapport === MARK.rapport ? fields : {};
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** What the panel says; null = nothing of ours. */
export function readToHost(data: unknown): ToHost | null {
  const { type, count, sent, received, code, sentence } = fieldsOf(data);
  if (type === "hello" || type === "ready" || type === "close" || type === "forgotten") return { type };
  if (type === "unread" && isCount(count)) return { type, count };
  if (type === "message" && isCount(sent) && isCount(received)) return { type, sent, received };
  if (type === "error" && isShort(code, 40) && isShort(sentence, 300)) return { type, code, sentence };
  return null;
}

/** What the embedding page says; null = nothing of ours. */
export function readToPanel(data: unknown): ToPanel | null {
  const { type, knobs, locale, identity, isOpen } = fieldsOf(data);
  if (type === "opened" || type === "closed" || type === "reset") return { type };
  const who = readIdentity(identity);
  const look = readKnobs(knobs);
  const isSetup = look !== null && isShort(locale, 35) && typeof isOpen === "boolean" && (who || identity === null);
  return type === "setup" && isSetup ? { type, knobs: look, locale, identity: who, isOpen } : null;
}

function isShort(value: unknown, maxChars: number): value is string {
  return typeof value === "string" && value.length <= maxChars;
}

function readIdentity(value: unknown): Identity | null {
  const { id, signature } = (typeof value === "object" && value !== null ? value : {}) as Fields;
  return isShort(id, 128) && id !== "" && isShort(signature, 128) ? { id, signature } : null;
}

function readKnobs(value: unknown): Knobs | null {
  if (typeof value !== "object" || value === null) return null;
  const { accent, radius, scheme } = value as Fields;
  const isAccent = accent === null || (typeof accent === "string" && /^#[0-9a-f]{6}$/.test(accent));
  const isRadius = radius === null || (isCount(radius) && radius <= 32);
  const isScheme = scheme === null || SCHEMES.includes(scheme as Scheme);
  return isAccent && isRadius && isScheme ? (value as Knobs) : null;
}
