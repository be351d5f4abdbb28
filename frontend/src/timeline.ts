// What a page shows of a conversation's state: rows in order, siblings together, what is awaited. Pure.

import type { ChatState, Notice, PendingSend } from "./conversation";
import { hasEnded, type Row, type Rows } from "./rows";

export type Item =
  | { readonly kind: "message"; readonly key: string; readonly row: Row; readonly siblings: Rows }
  | { readonly kind: "notice"; readonly key: string; readonly notice: Notice }
  | { readonly kind: "pending"; readonly key: string; readonly pending: PendingSend };

/** The sibling that stands for its turn: the running one, else the one chosen last, else the newest. */
export function shownSibling(siblings: Rows): Row | undefined {
  const running = siblings.findLast((row) => !hasEnded(row));
  if (running) return running;
  const selected = siblings.filter((row) => row.selected);
  return (
    selected.reduce<Row | undefined>(
      (best, row) => (best === undefined || row.changed_seq >= best.changed_seq ? row : best),
      undefined,
    ) ?? siblings.at(-1)
  );
}

function groupKey(row: Row): string {
  return row.kind === "reply" && row.parent !== null ? `after-${row.parent}` : row.id;
}

/** Messages in order; replies to the same message are one item at the place of the first. */
export function itemsOf(state: ChatState): readonly Item[] {
  const groups = new Map<string, Row[]>();
  for (const row of state.rows) {
    if (row.kind === "note") continue;
    const group = groups.get(groupKey(row));
    if (group) group.push(row);
    else groups.set(groupKey(row), [row]);
  }
  const messages: { readonly seq: number; readonly item: Item }[] = [];
  for (const [key, group] of groups) {
    const siblings = group.toSorted((a, b) => a.sibling_index - b.sibling_index || a.seq - b.seq);
    const row = shownSibling(siblings);
    if (row) messages.push({ seq: group[0]?.seq ?? 0, item: { kind: "message", key, row, siblings } });
  }
  const notices = state.notices.map((notice, at) => ({
    seq: notice.afterSeq + 0.1,
    item: { kind: "notice", key: `notice-${at}`, notice } as const,
  }));
  const ordered = [...messages, ...notices].toSorted((a, b) => a.seq - b.seq).map(({ item }) => item);
  const pending = state.outbox.map((entry): Item => ({ kind: "pending", key: entry.clientId, pending: entry }));
  return [...ordered, ...pending];
}

export function runningReply(state: ChatState): Row | undefined {
  return state.rows.findLast((row) => row.kind === "reply" && row.status === "running");
}

/** The newest reply a visitor can ask to be written anew: only the last turn's, so that later turns keep their ground. */
export function lastReplyKey(items: readonly Item[]): string | null {
  const last = items.findLast((item) => item.kind !== "notice");
  return last?.kind === "message" && last.row.kind === "reply" ? last.key : null;
}

export function isOpen(state: ChatState): boolean {
  return state.conversation === null || state.conversation.state === "open";
}

/** Whether the page should show that an answer is on its way: from the moment of sending to the first text. */
export function isAwaitingReply(state: ChatState): boolean {
  if (!isOpen(state) || state.conversation?.control === "human") return false;
  if (state.regenerating !== null) return true;
  if (state.outbox.length > 0) return state.outbox.some((pending) => pending.state === "sending");
  const running = runningReply(state);
  if (running) return running.text === "";
  const last = state.rows.at(-1);
  if (!last) return false;
  if (last.kind === "reply") return last.status === "queued";
  return last.kind === "visitor" && state.unanswered[last.id] === undefined;
}
