// @vitest-environment happy-dom
// What the browser keeps: drafts by conversation, one key per unsent message, and word of what another tab does.

import { beforeEach, expect, it, vi } from "vitest";
import type { PendingSend } from "../../src/conversation";
import { keepFor } from "../../src/widget/storage";

const KEEP = keepFor("demo");
const sent: PendingSend = { clientId: "c1", text: "hello", state: "sending", code: null };

beforeEach(() => window.localStorage.clear());

/** What a browser tells every other tab. */
function elsewhere(key: string, newValue: string | null): void {
  window.dispatchEvent(new StorageEvent("storage", { key, newValue }));
}

it("each conversation has its own draft, and each site its own", () => {
  KEEP.setDraft("one", "half a thought");
  expect(KEEP.draft("one")).toBe("half a thought");
  expect(KEEP.draft("two")).toBe("");
  expect(keepFor("other").draft("one")).toBe("");
  KEEP.setDraft("one", "");
  expect(window.localStorage.length).toBe(0);
});

it("unsent messages come back as unsent, in the order in which they were written", () => {
  vi.spyOn(Date, "now").mockReturnValueOnce(1).mockReturnValueOnce(2);
  KEEP.putUnsent(sent);
  KEEP.putUnsent({ ...sent, clientId: "c0", text: "again" });
  expect(KEEP.unsent().map(({ clientId, state }) => [clientId, state])).toEqual([
    ["c1", "unsent"],
    ["c0", "unsent"],
  ]);
  KEEP.dropUnsent("c1");
  expect(KEEP.unsent().map(({ clientId }) => clientId)).toEqual(["c0"]);
});

it("what is kept and broken is left out", () => {
  window.localStorage.setItem("rapport:demo:unsent:c1", "{");
  window.localStorage.setItem("rapport:demo:unsent:c2", '{"text":1,"at":2}');
  expect(KEEP.unsent()).toEqual([]);
});

it("another tab's drafts and sends are heard until one stops listening, another site's never", () => {
  const heard: unknown[] = [];
  const stop = KEEP.watch({
    draft: (conversation, text) => heard.push(["draft", conversation, text]),
    put: ({ clientId, text, state }) => heard.push(["put", clientId, text, state]),
    drop: (clientId) => heard.push(["drop", clientId]),
  });
  elsewhere("rapport:demo:draft:one", "half");
  elsewhere("rapport:demo:draft:one", null);
  elsewhere("rapport:demo:unsent:c1", '{"at":1,"text":"hello"}');
  elsewhere("rapport:demo:unsent:c1", null);
  elsewhere("rapport:other:draft:one", "no");
  stop();
  elsewhere("rapport:demo:unsent:c2", null);
  expect(heard).toEqual([
    ["draft", "one", "half"],
    ["draft", "one", ""],
    ["put", "c1", "hello", "sending"],
    ["drop", "c1"],
  ]);
});

it("forgetting leaves nothing of the site and all of the others", () => {
  KEEP.setToken("t");
  KEEP.setConversation("one");
  KEEP.setDraft("one", "x");
  KEEP.setReadsSentences(true);
  keepFor("other").setToken("u");
  KEEP.forgetAll();
  expect(Object.keys(window.localStorage)).toEqual(["rapport:other:token"]);
});
