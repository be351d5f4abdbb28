// One socket that stays: opens, greets, pings, notices a dead line, comes back. Knows nothing of what the events mean.
// Used by the visitor's store and by the staff's live view; tests bring their own `Platform` (clock, dice, sockets).

import {
  CLOSE_IDLE,
  CLOSE_MALFORMED,
  CLOSE_ORIGIN,
  CLOSE_OVERLOADED,
  CLOSE_RATE,
  CLOSE_REPLACED,
  CLOSE_TOKEN,
} from "./protocol";

export const PING_EVERY_MS = 20_000;
/** A line that has not answered for this long after a ping is dead, whatever the browser says. */
export const PONG_WITHIN_MS = 8_000;
/** After a sleep the check is short: a reply posted meanwhile should be seen within three seconds. */
export const PROBE_WITHIN_MS = 1_200;
/** A server must answer the greeting within this time. */
export const GREETED_WITHIN_MS = 10_000;
const MIN_WAIT_MS = 500;
const MAX_WAIT_MS = 30_000;

export interface Wire {
  send(frame: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number }) => void) | null;
}

export interface Platform {
  connect(url: string): Wire;
  random(): number;
  setTimer(run: () => void, afterMs: number): number;
  clearTimer(timer: number): void;
  /** Calls back when the page comes back to life: `online`, `visibilitychange`, `pageshow`. Returns how to stop. */
  onWake(wake: () => void): () => void;
}

export type StopReason = "malformed" | "token" | "origin" | "replaced";

export type Status =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  | { readonly kind: "waiting"; readonly waitMs: number }
  | { readonly kind: "paused" }
  | { readonly kind: "stopped"; readonly reason: StopReason };

export interface SocketOptions {
  readonly url: string;
  readonly platform: Platform;
  /** Runs before each connection (gets a token where there is none); a rejection counts as a failed try. */
  prepare(): Promise<void>;
  /** The frames that open a conversation with the server; asked for at every connection. */
  greet(): readonly string[];
  onFrame(content: unknown): void;
  onStatus(status: Status): void;
  /** The server refused the token (4401): forget it, so that `prepare` gets a new one. false = there is no other. */
  onTokenRefused(): boolean;
}

export type AfterClose =
  | { readonly kind: "retry"; readonly atLeastMs: number }
  | { readonly kind: "renew" }
  | { readonly kind: "pause" }
  | { readonly kind: "stop"; readonly reason: StopReason };

/** Whether to come back after a close, from its code alone. */
export function afterClose(code: number): AfterClose {
  switch (code) {
    case CLOSE_TOKEN:
      return { kind: "renew" };
    case CLOSE_MALFORMED:
      return { kind: "stop", reason: "malformed" };
    case CLOSE_ORIGIN:
      return { kind: "stop", reason: "origin" };
    case CLOSE_REPLACED:
      return { kind: "stop", reason: "replaced" };
    case CLOSE_IDLE:
      return { kind: "pause" };
    case CLOSE_RATE:
      return { kind: "retry", atLeastMs: 20_000 };
    case CLOSE_OVERLOADED:
      return { kind: "retry", atLeastMs: 5_000 };
    default:
      return { kind: "retry", atLeastMs: 0 };
  }
}

/** Doubling wait with jitter in its upper half, 0.5 s to 30 s. `tries` counts failures since the last good line. */
export function backoffMs(tries: number, random: () => number): number {
  const ceiling = Math.min(MAX_WAIT_MS, MIN_WAIT_MS * 2 ** Math.min(tries, 10));
  return Math.max(MIN_WAIT_MS, ceiling / 2 + (random() * ceiling) / 2);
}

export class LiveSocket {
  #wire: Wire | null = null;
  #isGreeted = false;
  #tries = 0;
  #refusals = 0;
  #retryTimer: number | null = null;
  #pingTimer: number | null = null;
  #deadline: number | null = null;
  #unsubscribe: (() => void) | null = null;
  #status: Status = { kind: "paused" };
  /** Rises with every new attempt, so that what an older attempt still does is ignored. */
  #attempt = 0;

  readonly #options: SocketOptions;

  constructor(options: SocketOptions) {
    this.#options = options;
  }

  open(): void {
    this.#unsubscribe ??= this.#options.platform.onWake(() => this.#wake());
    this.#connect();
  }

  /** Leaves for good (until `open`). */
  close(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#drop();
    this.#setStatus({ kind: "paused" });
  }

  get isOpen(): boolean {
    return this.#status.kind === "open";
  }

  /** false when the line is not open: nothing is queued here, the caller keeps what must not be lost. */
  send(frame: string): boolean {
    if (this.#status.kind === "paused" && this.#unsubscribe) this.#connect();
    if (!this.isOpen || !this.#wire) return false;
    this.#wire.send(frame);
    return true;
  }

  /** Greets again on the open line (after a gap), or connects at once. */
  greetAgain(): void {
    if (this.isOpen && this.#wire) for (const frame of this.#options.greet()) this.#wire.send(frame);
    else this.retryNow();
  }

  /** The visitor or the page asks to come back at once; also after a stop. */
  retryNow(): void {
    if (this.#status.kind === "open" || this.#status.kind === "connecting") return;
    this.#tries = 0;
    this.#refusals = 0;
    this.#connect();
  }

  #wake(): void {
    if (this.#status.kind === "open") this.#ping(PROBE_WITHIN_MS);
    else if (this.#status.kind === "waiting" || this.#status.kind === "paused") this.retryNow();
  }

  #connect(): void {
    this.#drop();
    const attempt = this.#attempt;
    this.#setStatus({ kind: "connecting" });
    this.#options.prepare().then(
      () => {
        if (attempt === this.#attempt) this.#dial();
      },
      () => {
        if (attempt === this.#attempt) this.#retryLater(0);
      },
    );
  }

  #dial(): void {
    const wire = this.#options.platform.connect(this.#options.url);
    this.#wire = wire;
    this.#setDeadline(GREETED_WITHIN_MS);
    wire.onopen = () => {
      if (wire === this.#wire) for (const frame of this.#options.greet()) wire.send(frame);
    };
    wire.onmessage = (event) => {
      if (wire === this.#wire) this.#receive(event.data);
    };
    wire.onclose = (event) => {
      if (wire === this.#wire) this.#closed(event.code);
    };
  }

  #receive(data: unknown): void {
    let content: unknown;
    try {
      content = typeof data === "string" ? JSON.parse(data) : null;
    } catch {
      return; // a broken frame from a proxy; the next greeting brings what it held
    }
    const type = (content as { type?: unknown } | null)?.type;
    // A greeting that was answered by an error was not answered: its deadline brings the next try.
    if (this.#isGreeted || type !== "error") this.#noteAlive();
    if (type === "welcome") this.#refusals = 0;
    if (type !== "pong") this.#options.onFrame(content);
  }

  #noteAlive(): void {
    this.#clearDeadline();
    if (this.#isGreeted) return;
    this.#isGreeted = true;
    this.#setStatus({ kind: "open" });
    this.#schedulePing();
  }

  #closed(code: number): void {
    this.#drop();
    const next = afterClose(code);
    if (next.kind === "retry") this.#retryLater(next.atLeastMs);
    else if (next.kind === "pause") this.#setStatus({ kind: "paused" });
    else if (next.kind === "stop") this.#setStatus({ kind: "stopped", reason: next.reason });
    else this.#renew();
  }

  #renew(): void {
    this.#refusals += 1;
    const mayComeBack = this.#options.onTokenRefused();
    if (!mayComeBack || this.#refusals > 3) this.#setStatus({ kind: "stopped", reason: "token" });
    else if (this.#refusals === 1) this.#connect();
    else this.#retryLater(1_000 * this.#refusals);
  }

  #retryLater(atLeastMs: number): void {
    const waitMs = Math.max(
      atLeastMs,
      backoffMs(this.#tries, () => this.#options.platform.random()),
    );
    this.#tries += 1;
    this.#setStatus({ kind: "waiting", waitMs });
    this.#retryTimer = this.#options.platform.setTimer(() => this.#connect(), waitMs);
  }

  #schedulePing(): void {
    this.#pingTimer = this.#options.platform.setTimer(() => {
      this.#tries = 0; // only a line that lasted is good news: one that drops at once must not be retried every half second
      this.#ping(PONG_WITHIN_MS);
      this.#schedulePing();
    }, PING_EVERY_MS);
  }

  #ping(answerWithinMs: number): void {
    this.send('{"type":"ping"}');
    this.#setDeadline(answerWithinMs);
  }

  #setDeadline(withinMs: number): void {
    this.#clearDeadline();
    this.#deadline = this.#options.platform.setTimer(() => {
      // The line looks open but nothing comes back: frozen phone, dead proxy. Do not wait for the browser to notice.
      const wasOpen = this.isOpen;
      this.#drop();
      if (wasOpen) this.#connect();
      else this.#retryLater(0);
    }, withinMs);
  }

  #clearDeadline(): void {
    if (this.#deadline !== null) this.#options.platform.clearTimer(this.#deadline);
    this.#deadline = null;
  }

  #drop(): void {
    this.#attempt += 1;
    this.#clearDeadline();
    for (const timer of [this.#retryTimer, this.#pingTimer]) {
      if (timer !== null) this.#options.platform.clearTimer(timer);
    }
    this.#retryTimer = null;
    this.#pingTimer = null;
    this.#isGreeted = false;
    const wire = this.#wire;
    this.#wire = null;
    wire?.close();
  }

  #setStatus(status: Status): void {
    this.#status = status;
    this.#options.onStatus(status);
  }
}
