// Who talks in a widget. The visitor may change while the page lives, when the host site names somebody or says to forget;
// nothing of the one before may reach the next.

import { render } from "preact";
import type { Identity } from "../hostlink";
import { read, write } from "../shared/local";
import { localeOf, type VisitorApi, visitorApi } from "./api";
import { begin } from "./begin";
import type { ChatConfig } from "./config";
import type { Host } from "./host";
import { keepFor } from "./storage";
import type { ChatStore } from "./store";

/** What the browser keeps of a visitor whom the host site names: a hash of the id, null of nobody. */
export async function markOf(identity: Identity | null): Promise<string | null> {
  return identity && (await import("../sha256")).sha256(identity.id);
}

/** An answer that comes after the visitor has left opens nothing and is kept nowhere. */
function whileHere(api: VisitorApi, isHere: () => boolean): VisitorApi {
  return {
    ...api,
    async start(previous) {
      const started = await api.start(previous);
      if (!isHere()) throw new Error("The visitor has left.");
      return started;
    },
  };
}

export class Visit {
  store: ChatStore | null = null;
  readonly #mount: HTMLElement;
  readonly #config: ChatConfig;
  readonly #host: Host;
  #identity: Identity | null = null;
  /** Counts the visitors of this page's life. */
  #turn = 0;

  constructor(mount: HTMLElement, config: ChatConfig, host: Host) {
    this.#mount = mount;
    this.#config = config;
    this.#host = host;
  }

  /** Begins as this visitor with this `markOf`, if it is not the one who talks already. Returns the new store, else null. */
  begin(identity: Identity | null, mark: string | null, locale: string): ChatStore | null {
    const isSame = identity?.id === this.#identity?.id && identity?.signature === this.#identity?.signature;
    if (this.store && isSame) return null;
    this.#leave();
    this.#identity = identity;
    this.#keepOnlyOf(mark);
    const turn = this.#turn;
    const { token } = keepFor(this.#config.site);
    const api = visitorApi({ ...this.#config, identity, locale: localeOf(locale || navigator.language), token });
    const guarded = whileHere(api, () => this.#turn === turn);
    this.store = begin(this.#mount, this.#config, guarded, this.#host);
    return this.store;
  }

  /** Leaves nothing of this visitor in the browser. */
  forget(): void {
    this.#leave();
    keepFor(this.#config.site).forgetAll();
  }

  #leave(): void {
    this.#turn += 1;
    render(null, this.#mount);
    this.store?.leave();
    this.store = null;
  }

  /** What the browser keeps belongs to one visitor: of the host site, by the mark, or to nobody known. */
  #keepOnlyOf(mark: string | null): void {
    const key = `rapport:${this.#config.site}:who`;
    if (read(key) === mark) return;
    keepFor(this.#config.site).forgetAll();
    write(key, mark);
  }
}
