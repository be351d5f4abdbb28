// The visitor's REST calls. Cookies are left out on purpose: the visitor is who the token says, even in a browser where
// staff are signed in. Failures are `ApiError` with a code that `texts.ts` turns into a sentence.

import type { Identity } from "../hostlink";
import { asObject, text, textOr, textOrNull } from "../json";

/** A call that hangs would keep the page from trying again. */
const ANSWER_WITHIN_MS = 20_000;

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`${status} ${code}`);
    this.name = "ApiError";
  }
}

export interface Started {
  readonly token: string;
  readonly conversation: string;
  readonly expiresAt: string | null;
}

export interface VisitorApi {
  start(previous: string | null): Promise<Started>;
  /** A call below the visitor's API with the visitor's token. */
  call(method: string, path: string, body?: object): Promise<Response>;
}

export interface ApiOptions {
  readonly site: string;
  readonly startPath: string;
  readonly apiPath: string;
  readonly locale: string;
  /** Of the host site; it goes before any token. */
  readonly identity?: Identity | null;
  token(): string | null;
}

function codeFor(status: number): string {
  if (status === 401 || status === 403) return "token";
  if (status === 404) return "not_found";
  if (status === 429) return "rate";
  return status >= 500 ? "unavailable" : "malformed";
}

/** The server's own code where its answer has one. */
async function codeOf(response: Response): Promise<string> {
  try {
    return textOr(asObject(await response.json(), "error"), "code", codeFor(response.status));
  } catch {
    return codeFor(response.status); // a proxy's page, not our server's answer
  }
}

async function call(
  path: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: "omit",
      cache: "no-store",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      headers: body ? { ...headers, "Content-Type": "application/json" } : headers,
      body: body ? JSON.stringify(body) : null,
    });
  } catch {
    throw new ApiError(0, "offline");
  }
  if (!response.ok) throw new ApiError(response.status, await codeOf(response));
  return response;
}

export function visitorApi(options: ApiOptions): VisitorApi {
  return {
    async start(previous) {
      // The language and region of the browser: which country's helplines stand on the safety card. What is undefined is
      // left out of the JSON.
      const { site, locale, identity } = options;
      const body = { site, locale: locale || undefined, identity: identity ?? undefined, token: previous ?? undefined };
      const started = asObject(await (await call(options.startPath, "POST", {}, body)).json(), "start");
      return {
        token: text(started, "token"),
        conversation: text(started, "conversation"),
        expiresAt: textOrNull(started, "expires_at"),
      };
    },
    call: (method, path, body) =>
      call(options.apiPath + path, method, { Authorization: `Bearer ${options.token() ?? ""}` }, body),
  };
}

/** Language and region without a browser's extras ("en-US-u-hc-h12" is "en-US"); "" where the text is no locale. */
export function localeOf(language: string): string {
  return /^[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-[A-Za-z]{2})?(?=-|$)/.exec(language)?.[0] ?? "";
}
