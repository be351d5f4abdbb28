// How many messages a panel has sent and received, and how many came unseen: numbers for the host page, never texts. Pure.

import type { ChatState } from "../conversation";
import { hasEnded } from "../rows";

export interface Counts {
  readonly sent: number;
  readonly received: number;
}

/** Stored visitor messages; replies that have ended, and what staff said. */
export function countsOf(chat: ChatState): Counts {
  const sent = chat.rows.filter((row) => row.kind === "visitor").length;
  const received = chat.rows.filter((row) => row.kind !== "visitor" && row.kind !== "note" && hasEnded(row)).length;
  return { sent, received };
}

const NOTHING: News = { message: null, unread: null };

export interface News {
  readonly message: Counts | null;
  readonly unread: number | null;
}

/** Compares one state of a conversation with the next. The history that a panel finds at its start is no news. */
export class NewsCounter {
  #conversation = "";
  #seen: Counts = { sent: 0, received: 0 };
  #first = this.#seen;
  #unread = 0;

  next(chat: ChatState, { isOpen }: { readonly isOpen: boolean }): News {
    const id = chat.conversation?.id ?? "";
    const counts = countsOf(chat);
    const before = this.#seen;
    this.#seen = counts;
    if (id !== this.#conversation) {
      this.#conversation = id;
      this.#first = counts;
      return NOTHING;
    }
    if (id === "" || (before.sent === counts.sent && before.received === counts.received)) return NOTHING;
    const message = { sent: counts.sent - this.#first.sent, received: counts.received - this.#first.received };
    const fresh = isOpen ? 0 : Math.max(0, counts.received - before.received);
    this.#unread += fresh;
    return { message, unread: fresh > 0 ? this.#unread : null };
  }

  /** The visitor has opened the panel: everything is seen. */
  read(): void {
    this.#unread = 0;
  }
}
