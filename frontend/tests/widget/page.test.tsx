// @vitest-environment happy-dom
// The chat page as it is drawn: what a visitor sees and can press, driven through the store by the wire's events.

import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Thumb } from "../../src/protocol";
import { App } from "../../src/widget/App";
import type { VisitorApi } from "../../src/widget/api";
import { sendsOn } from "../../src/widget/Composer";
import { type ChatConfig, readConfig } from "../../src/widget/config";
import { endChat } from "../../src/widget/matters";
import { actions, ending, formatted, sentences, settings } from "../../src/widget/parts";
import { keepFor } from "../../src/widget/storage";
import { ChatStore } from "../../src/widget/store";
import { message, welcome } from "../make";
import { settle, TestPlatform } from "../sockets";

const NASTY = [
  "<img src=x onerror=alert(1)>",
  "<script>alert(1)</script>",
  "<svg/onload=alert(1)>",
  "[click](javascript:alert(1))",
  '"><iframe srcdoc="<script>alert(1)</script>">',
  "<a href='javascript:alert(1)'>x</a>",
  "<style>*{display:none}</style>",
  "{{constructor.constructor('alert(1)')()}}",
];

const api: VisitorApi = {
  start: async () => ({ token: "t", conversation: "conversation-1", expiresAt: null }),
  call: async () => new Response("{}"),
};

let platform: TestPlatform;
let root: HTMLElement;
let store: ChatStore;

function config(): ChatConfig {
  const page = document.createElement("div");
  const source = document.createElement("script");
  source.id = "rapport-config";
  source.type = "application/json";
  source.textContent = JSON.stringify({
    site: { slug: "demo", name: "Harbour" },
    country: "GB",
    model: { name: "small", is_demo: true },
    helplines: { GB: [{ name: "Samaritans", phone: "116 123", text: "", url: "", hours: "24/7", country: "GB" }] },
  });
  page.append(source);
  return readConfig(document.createElement("div"), page);
}

// The later files are there, as they are on a page that has been open for a while.
beforeAll(() => Promise.all([actions.load(), formatted.load(), ending.load(), settings.load(), sentences()]));

beforeEach(async () => {
  window.localStorage.clear();
  platform = new TestPlatform();
  root = document.createElement("div");
  document.body.append(root);
  let ids = 0;
  const keep = keepFor("demo");
  store = new ChatStore({
    socketUrl: "ws://here/ws/chat/",
    platform,
    api,
    keep,
    now: () => platform.now,
    newId: () => {
      ids += 1;
      return `c${ids}`;
    },
  });
  await act(() => render(<App store={store} config={config()} keep={keep} />, root));
  await act(async () => {
    store.start();
    await settle();
    platform.wire.open();
    platform.wire.receive(welcome());
  });
});

afterEach(() => {
  store.leave();
  render(null, root);
  root.remove();
});

async function arrive(...events: readonly object[]): Promise<void> {
  await act(() => {
    for (const event of events) platform.wire.receive(event);
  });
}

function button(name: string): HTMLButtonElement {
  const all = [...root.querySelectorAll("button")];
  const found = all.find((one) => (one.getAttribute("aria-label") ?? one.textContent ?? "").trim() === name);
  if (!found) throw new Error(`There is no button "${name}".`);
  return found;
}

async function press(name: string): Promise<void> {
  await act(() => button(name).click());
}

function lastSent(): Record<string, unknown> {
  return JSON.parse(platform.wire.sent.at(-1) ?? "{}") as Record<string, unknown>;
}

const reply = (fields: object) =>
  message({ id: "r1", seq: 2, changed_seq: 2, kind: "reply", parent: "v1", text: "Yes", ...fields });

describe("the page", () => {
  it("says who answers and what it is not, before anything was written", () => {
    const text = root.textContent ?? "";
    expect(text).toContain("You are talking to an AI");
    expect(text).toContain("small demonstration model");
    expect(text).toContain("not a medical device and not an emergency service");
    expect(root.querySelector<HTMLInputElement>(".consent input")?.checked).toBe(false);
  });

  it("has one polite status region, and a log that does not speak", () => {
    expect(root.querySelectorAll("[aria-live=polite], [role=status]")).toHaveLength(1);
    expect(root.querySelectorAll("[role=alert], [aria-live=assertive]")).toHaveLength(0);
    expect(root.querySelector("[role=log]")?.getAttribute("aria-live")).toBe("off");
  });

  it.each(NASTY)("shows what people and models wrote as they wrote it: %s", async (text) => {
    await arrive(
      { type: "message.changed", message: message({ id: "v1", text }) },
      { type: "message.changed", message: reply({ text }) },
      {
        type: "message.changed",
        message: message({ id: "s1", seq: 3, changed_seq: 3, kind: "staff", text, author: text }),
      },
    );
    expect([...root.querySelectorAll(".text")].map((node) => node.textContent)).toEqual([text, text, text]);
    expect(root.querySelectorAll("img, script, iframe, style, .log a, .log svg[onload]")).toHaveLength(0);
  });

  it("appends to a running reply and never draws it anew", async () => {
    await arrive({ type: "message.changed", message: message({ id: "v1" }) });
    await arrive({ type: "reply.started", message_id: "r1", parent: "v1" });
    await arrive({ type: "reply.delta", message_id: "r1", offset: 0, text: "That " });
    const node = root.querySelector(".row.reply .text")?.firstChild;
    await arrive({ type: "reply.delta", message_id: "r1", offset: 5, text: "helps\n\nmore" });
    expect(root.querySelector(".row.reply .text")?.firstChild).toBe(node);
    expect(node?.textContent).toBe("That helps\n\nmore");
  });

  it("keeps a half answer, with the reason and another try below it", async () => {
    await arrive(
      { type: "message.changed", message: message({ id: "v1" }) },
      { type: "reply.started", message_id: "r1", parent: "v1" },
      { type: "reply.delta", message_id: "r1", offset: 0, text: "Half of" },
      { type: "reply.failed", message_id: "r1", code: "engine_broken", retryable: true },
    );
    expect(root.querySelector(".row.reply .text")?.textContent).toBe("Half of");
    await press("Try again");
    expect(lastSent()).toEqual({ type: "reply.regenerate", message_id: "r1" });
  });

  it("leafs through siblings", async () => {
    await arrive(
      { type: "message.changed", message: message({ id: "v1" }) },
      { type: "message.changed", message: reply({ selected: false }) },
      { type: "message.changed", message: reply({ id: "r2", seq: 3, changed_seq: 3, sibling_index: 1, text: "Or" }) },
    );
    expect(root.querySelector(".siblings-place")?.textContent).toBe("2/2");
    await press("Previous answer");
    expect(lastSent()).toEqual({ type: "reply.select", message_id: "r1" });
  });

  it("takes a thumb, its reasons, and takes it back", async () => {
    await arrive(
      { type: "message.changed", message: message({ id: "v1" }) },
      { type: "message.changed", message: reply({}) },
    );
    const thumb = (value: Thumb, reasons: readonly string[]) => ({
      type: "feedback.set",
      message_id: "r1",
      value,
      reasons,
      comment: "",
    });
    await press("Bad answer");
    expect(lastSent()).toEqual(thumb(-1, []));
    await act(() => root.querySelector<HTMLInputElement>(".chip input")?.click());
    await press("Send feedback");
    expect(lastSent()).toEqual(thumb(-1, ["missed_feeling"]));
    await press("Bad answer");
    expect(lastSent()).toEqual(thumb(0, []));
  });

  it("shows the card before any answer, and hears that it was a misunderstanding", async () => {
    const line = { name: "Shout", phone: "", text: "SHOUT to 85258", url: "", hours: "", country: "GB" };
    await arrive({ type: "safety.card", level: "high", resources: [line], staffed: false });
    const card = root.querySelector(".card");
    expect(card?.querySelector("a")?.getAttribute("href")).toBe("sms:85258?&body=SHOUT");
    expect(card?.textContent).toContain("Nobody may be reading this chat");
    const log = root.querySelector(".log-frame");
    expect(card && log && card.compareDocumentPosition(log) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    await press("You misunderstood me");
    expect(lastSent()).toEqual({ type: "safety.ack" });
  });

  it("opens the help sheet without a line", async () => {
    await act(() => platform.wire.drop(1006));
    await act(() => root.querySelector<HTMLButtonElement>(".help-button")?.click());
    expect(root.querySelector("dialog a[href^='tel:']")?.getAttribute("href")).toBe("tel:116123");
  });

  it("stops a running answer with Escape and with the button", async () => {
    await arrive({ type: "reply.started", message_id: "r1", parent: null });
    await act(() => {
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    });
    expect(lastSent()).toEqual({ type: "reply.stop", message_id: "r1" });
    await press("Stop");
    expect(platform.wire.types.filter((type) => type === "reply.stop")).toHaveLength(2);
  });

  it("shows the dots at once and the place in line when it is told", async () => {
    await act(() => {
      store.send("hello");
    });
    expect(root.querySelectorAll(".dots")).toHaveLength(1);
    await arrive(
      { type: "message.accepted", client_id: "c1", message: message({ id: "v1", client_id: "c1" }) },
      { type: "reply.queued", message_id: "v1", place: 3, expected_wait_s: 24 },
    );
    expect(root.querySelector(".dots")?.textContent).toContain("number 3 in line. It should begin in 24 seconds");
  });

  it("asks for a rating once the chat has ended, and writes no more", async () => {
    await act(async () => {
      await endChat(store);
    });
    expect(root.querySelector("textarea")).toBeNull();
    expect(root.querySelectorAll(".star")).toHaveLength(5);
  });
});

describe("the Enter key", () => {
  const press = { key: "Enter", shiftKey: false, isComposing: false, keyCode: 13 };

  it("sends, but not with Shift, nor inside an input method", () => {
    expect(sendsOn(press)).toBe(true);
    expect(sendsOn({ ...press, shiftKey: true })).toBe(false);
    expect(sendsOn({ ...press, isComposing: true })).toBe(false);
    expect(sendsOn({ ...press, keyCode: 229 })).toBe(false);
    expect(sendsOn({ ...press, key: "a" })).toBe(false);
  });
});
