// The visitor's token: the kept one while the server takes it, else a new one from the start call. Used by `store.ts`.

import { ApiError, type VisitorApi } from "./api";
import type { Keep } from "./storage";

export class VisitorToken {
  #isRefused = false;

  readonly #keep: Keep;
  readonly #api: VisitorApi;

  constructor(keep: Keep, api: VisitorApi) {
    this.#keep = keep;
    this.#api = api;
  }

  get value(): string {
    return this.#keep.token() ?? "";
  }

  /** The next connection asks for another one, with the old one as proof of who comes. */
  renew(): void {
    this.#isRefused = true;
  }

  /** Rejects with ApiError where the server gives none. */
  async ensure(): Promise<void> {
    const previous = this.#keep.token();
    if (previous !== null && !this.#isRefused) return;
    const started = await this.#start(previous);
    this.#isRefused = false;
    this.#keep.setToken(started.token);
  }

  async #start(previous: string | null): ReturnType<VisitorApi["start"]> {
    try {
      return await this.#api.start(previous);
    } catch (error) {
      const isUnknown = error instanceof ApiError && [400, 401].includes(error.status);
      if (previous === null || !isUnknown) throw error;
      return this.#api.start(null); // a server that does not know the old token meets a stranger
    }
  }
}
