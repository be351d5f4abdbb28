// The staff's REST calls, as the signed-in person (cookie). Writing calls carry Django's CSRF token.

import {
  type Alert,
  type ConversationRow,
  type Page,
  readAlert,
  readConversationRow,
  readPage,
  readTurnPage,
  type TurnPage,
} from "./turns";

const ANSWER_WITHIN_MS = 20_000;

export class StaffApiError extends Error {
  constructor(readonly status: number) {
    super(`The server answered ${status}.`);
    this.name = "StaffApiError";
  }

  get sentence(): string {
    if (this.status === 0) return "There is no connection to the server.";
    if (this.status === 401) return "You are signed out. Please sign in again.";
    if (this.status === 403) return "Your role does not allow this.";
    if (this.status === 404) return "This is no longer there.";
    if (this.status === 409) return "Somebody else changed this meanwhile.";
    return "The server could not do this. Please try again.";
  }
}

export interface StaffApi {
  conversations(cursor: string | null): Promise<Page<ConversationRow>>;
  turns(conversation: string, ask: { readonly cursor: string | null; readonly isRevealed: boolean }): Promise<TurnPage>;
  alerts(): Promise<readonly Alert[]>;
  acknowledge(alert: string): Promise<void>;
  post(conversation: string, message: { readonly client_id: string; readonly text: string }): Promise<void>;
}

/** Django keeps the token in a cookie that scripts may read. */
export function csrfToken(cookies: string): string {
  const found = cookies.split("; ").find((cookie) => cookie.startsWith("csrftoken="));
  return found === undefined ? "" : decodeURIComponent(found.slice("csrftoken=".length));
}

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      ...init,
    });
  } catch {
    throw new StaffApiError(0);
  }
  if (!response.ok) throw new StaffApiError(response.status);
  return response;
}

async function write(path: string, body: object): Promise<void> {
  await call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken(document.cookie) },
    body: JSON.stringify(body),
  });
}

export function staffApi(root: string): StaffApi {
  const page = async (path: string, query: Readonly<Record<string, string | null>>): Promise<unknown> => {
    const asked = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== null);
    const search = new URLSearchParams(asked).toString();
    return (await call(search === "" ? path : `${path}?${search}`)).json();
  };
  const conversation = (id: string) => `${root}conversations/${encodeURIComponent(id)}/`;
  return {
    conversations: async (cursor) => readPage(await page(`${root}conversations/`, { cursor }), readConversationRow),
    turns: async (id, { cursor, isRevealed }) =>
      readTurnPage(await page(`${conversation(id)}turns/`, { cursor, reveal: isRevealed ? "1" : null })),
    alerts: async () => readPage(await page(`${root}alerts/`, { open: "1" }), readAlert).results,
    acknowledge: (alert) => write(`${root}alerts/${encodeURIComponent(alert)}/acknowledge/`, {}),
    post: (id, message) => write(`${conversation(id)}messages/`, message),
  };
}
