// What the chat page keeps in the browser, per site: token, unsent messages, drafts, a choice. Used by `store.ts` and by
// the composer. Tabs of one browser share it and tell each other.

import type { PendingSend } from "../conversation";
import { keysWith, read, write } from "../shared/local";

export interface Keep {
  token(): string | null;
  setToken(token: string | null): void;
  unsent(): readonly PendingSend[];
  putUnsent(pending: PendingSend): void;
  dropUnsent(clientId: string): void;
  /** The conversation that this browser knew last; "" before the first. */
  conversation(): string;
  setConversation(id: string): void;
  draft(conversation: string): string;
  setDraft(conversation: string, text: string): void;
  readsSentences(): boolean;
  setReadsSentences(isWanted: boolean): void;
  forgetAll(): void;
  /** Calls back for what another tab of this browser changes. Returns how to stop. */
  watch(on: Watcher): () => void;
}

/** What another tab does with the same site's chat. */
export interface Watcher {
  draft?(conversation: string, text: string): void;
  put?(pending: PendingSend): void;
  drop?(clientId: string): void;
}

interface KeptSend {
  readonly at: number;
  readonly text: string;
}

function parseKept(value: string | null): KeptSend | null {
  try {
    const kept = JSON.parse(value ?? "null") as Partial<KeptSend> | null;
    return typeof kept?.text === "string" && typeof kept.at === "number" ? { at: kept.at, text: kept.text } : null;
  } catch {
    return null;
  }
}

/** One key per unsent message, so that two tabs never overwrite each other's. */
export function keepFor(site: string): Keep {
  const prefix = `rapport:${site}:`;
  const unsentPrefix = `${prefix}unsent:`;
  const draftPrefix = `${prefix}draft:`;
  return {
    token: () => read(`${prefix}token`),
    setToken: (token) => write(`${prefix}token`, token),
    unsent: () =>
      keysWith(unsentPrefix)
        .flatMap((key) => {
          const kept = parseKept(read(key));
          return kept ? [{ ...kept, clientId: key.slice(unsentPrefix.length) }] : [];
        })
        .toSorted((a, b) => a.at - b.at)
        .map(({ clientId, text }) => ({ clientId, text, state: "unsent", code: null })),
    putUnsent: ({ clientId, text }) => write(unsentPrefix + clientId, JSON.stringify({ at: Date.now(), text })),
    dropUnsent: (clientId) => write(unsentPrefix + clientId, null),
    conversation: () => read(`${prefix}conversation`) ?? "",
    setConversation: (id) => write(`${prefix}conversation`, id),
    draft: (conversation) => read(draftPrefix + conversation) ?? "",
    setDraft: (conversation, text) => write(draftPrefix + conversation, text === "" ? null : text),
    readsSentences: () => read(`${prefix}sentences`) === "1",
    setReadsSentences: (isWanted) => write(`${prefix}sentences`, isWanted ? "1" : null),
    forgetAll: () => {
      for (const key of keysWith(prefix)) write(key, null);
    },
    watch(on) {
      const hear = ({ key, newValue }: StorageEvent) => {
        if (key?.startsWith(draftPrefix)) on.draft?.(key.slice(draftPrefix.length), newValue ?? "");
        if (!key?.startsWith(unsentPrefix)) return;
        const clientId = key.slice(unsentPrefix.length);
        const kept = parseKept(newValue);
        if (kept) on.put?.({ clientId, text: kept.text, state: "sending", code: null });
        else on.drop?.(clientId);
      };
      window.addEventListener("storage", hear);
      return () => window.removeEventListener("storage", hear);
    },
  };
}
