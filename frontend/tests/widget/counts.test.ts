// What a host page may know of a conversation: how many messages, and how many came while nobody looked.

import { describe, expect, it } from "vitest";
import { EMPTY, reduce } from "../../src/conversation";
import { NewsCounter } from "../../src/widget/counts";
import { message, welcome } from "../make";

const open = { isOpen: true };
const closed = { isOpen: false };

describe("news for the host page", () => {
  it("has none before the greeting was answered, and none of the history that was found", () => {
    const news = new NewsCounter();
    expect(news.next(EMPTY, closed)).toEqual({ message: null, unread: null });
    const greeted = reduce(EMPTY, welcome({ changes: [message({ id: "a", kind: "reply", status: "complete" })] }));
    expect(news.next(greeted, closed)).toEqual({ message: null, unread: null });
  });

  it("counts what is sent, and replies once they have ended; unread only while it is closed", () => {
    const news = new NewsCounter();
    let chat = reduce(EMPTY, welcome({}));
    news.next(chat, open);
    const change = (id: string, kind: "visitor" | "reply" | "staff", status: "complete" | "running", seq: number) => {
      chat = reduce(chat, { type: "message.changed", message: message({ id, kind, status, seq, changed_seq: seq }) });
    };
    change("a", "visitor", "complete", 1);
    expect(news.next(chat, open).message).toEqual({ sent: 1, received: 0 });
    change("b", "reply", "running", 2);
    expect(news.next(chat, open)).toEqual({ message: null, unread: null });
    change("b", "reply", "complete", 3);
    expect(news.next(chat, closed)).toEqual({ message: { sent: 1, received: 1 }, unread: 1 });
    change("c", "staff", "complete", 4);
    expect(news.next(chat, closed).unread).toBe(2);
    news.read();
    change("d", "staff", "complete", 5);
    expect(news.next(chat, closed).unread).toBe(1);
    expect(news.next(chat, closed)).toEqual({ message: null, unread: null });
  });

  it("begins to count again with a new conversation", () => {
    const news = new NewsCounter();
    const first = [message({ id: "a" }), message({ id: "b", kind: "reply", seq: 2, changed_seq: 2 })];
    news.next(reduce(EMPTY, welcome({ changes: first })), closed);
    const another = reduce(EMPTY, welcome({ conversation: { id: "conversation-2" } }));
    expect(news.next(another, closed)).toEqual({ message: null, unread: null });
    const next = reduce(another, { type: "message.changed", message: message({ id: "c" }) });
    expect(news.next(next, closed).message).toEqual({ sent: 1, received: 0 });
  });
});
