// The panel's side of the link to the page that embeds it: hears one window of one origin, and nobody else.

import { readToPanel, sealed, type ToHost, type ToPanel } from "../hostlink";
import type { Host } from "./host";

/** The part of `window` that a link needs. */
export interface LinkWindow {
  readonly parent: { postMessage(message: unknown, origin: string): void };
  addEventListener(type: "message", hear: (event: MessageEvent) => void): void;
}

export class HostLink implements Host {
  readonly isEmbedded = true;
  readonly #own: LinkWindow;
  readonly #origin: string;

  /** `origin` is the embedding page's, and one of those that the server lists for the site. */
  constructor(own: LinkWindow, origin: string) {
    this.#own = own;
    this.#origin = origin;
  }

  /** Hears the embedding page; says hello to it. */
  start(obey: (message: ToPanel) => void): void {
    this.#own.addEventListener("message", ({ source, origin, data }) => {
      if ((source as unknown) !== this.#own.parent || origin !== this.#origin) return;
      const message = readToPanel(data);
      if (message) obey(message);
    });
    this.say({ type: "hello" });
  }

  say(message: ToHost): void {
    this.#own.parent.postMessage(sealed(message), this.#origin);
  }

  close(): void {
    this.say({ type: "close" });
  }

  unread(count: number): void {
    this.say({ type: "unread", count });
  }
}

/** The embedding page's origin; null = a page of its own, a frame that the loader did not make, or one of no listed page. */
export function embeddingOrigin(own: Window, origins: readonly string[]): string | null {
  const origin = new URLSearchParams(own.location.search).get("host") ?? "";
  return own.parent !== own && origins.includes(origin) ? origin : null;
}
