// What the panel's components may ask of the page that embeds it. The link itself is in `link.ts`, which only widgets
// fetch.

export interface Host {
  /** Whether the panel stands in a widget; a page of its own has nothing to close. */
  readonly isEmbedded: boolean;
  close(): void;
  /** Replies that came while the panel was closed, for the launcher's badge; `embedded.ts` counts them. */
  unread(count: number): void;
}

/** For the chat as a page of its own. */
export const NO_HOST: Host = { isEmbedded: false, close: () => {}, unread: () => {} };
