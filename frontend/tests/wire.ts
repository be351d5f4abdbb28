// The wire's examples as the tests read them; both sides of the wire parse the same file.

import examples from "../wire-examples.json";

export interface BadFrame {
  readonly why: string;
  readonly frame: string;
  readonly code: string;
  readonly repeat?: string;
  readonly times?: number;
  readonly end?: string;
}

export const clientExamples: readonly Record<string, unknown>[] = examples.client;
export const serverExamples: readonly Record<string, unknown>[] = examples.server;
export const badServer: readonly { readonly why: string; readonly event: unknown }[] = examples.bad_server;
export const badClient: readonly BadFrame[] = examples.bad_client as readonly BadFrame[];

export function frameOf(bad: BadFrame): string {
  return bad.frame + (bad.repeat ?? "").repeat(bad.times ?? 0) + (bad.end ?? "");
}
