// @vitest-environment happy-dom
// The card on a host page: whom it listens to, when it gives up, what it tells the panel.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sealed, type ToHost, type ToPanel } from "../../src/hostlink";
import { makePanel } from "../../src/loader/panel";
import { lockScroll } from "../../src/loader/scroll";
import type { Panel, Seat } from "../../src/loader/seat";

const OURS = "https://chat.example";
let seat: Seat;
let panel: Panel;
let told: [string, object | undefined][];
let posted: [ToPanel & { readonly rapport: 1 }, string][];

function makeSeat(options: Seat["options"]): Seat {
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const section = document.createElement("section");
  const launcher = document.createElement("button");
  section.append(launcher);
  root.append(section);
  document.documentElement.append(host);
  return {
    site: "shop",
    base: new URL(`${OURS}/`),
    host,
    root,
    section,
    launcher,
    options,
    identity: null,
    isOpen: false,
    unread: 0,
    draw: vi.fn(),
    tell: (event, facts) => told.push([event, facts]),
    fail: vi.fn(),
    giveUp: vi.fn(),
    closeOthers: vi.fn(),
  };
}

const frame = () => seat.root.querySelector<HTMLIFrameElement>("x-frame");

function hear(message: unknown, { origin = OURS, source = frame()?.contentWindow as unknown } = {}): void {
  const event = new MessageEvent("message", { data: message, origin });
  Object.defineProperty(event, "source", { value: source });
  window.dispatchEvent(event);
}

function say(message: ToHost): void {
  hear(sealed(message));
}

function open(options: Seat["options"] = {}): void {
  seat = makeSeat(options);
  panel = makePanel(seat);
  panel.open();
  const target = { postMessage: (message: never, origin: string) => posted.push([message, origin]) };
  Object.defineProperty(frame(), "contentWindow", { value: target });
}

beforeEach(() => {
  vi.useFakeTimers();
  // No frame loads anything here; what a panel says is brought by `hear`.
  const create = document.createElement.bind(document);
  vi.spyOn(document, "createElement").mockImplementation((tag: string) => create(tag === "iframe" ? "x-frame" : tag));
  told = [];
  posted = [];
});

afterEach(() => {
  panel.destroy();
  seat.host.remove();
  vi.useRealTimers();
});

describe("the frame", () => {
  it("is the page of the site, told which page asks, and nothing is posted before it speaks", () => {
    open();
    expect(frame()?.getAttribute("src")).toBe(`${OURS}/chat/shop/?host=${encodeURIComponent(location.origin)}`);
    expect(frame()?.getAttribute("referrerpolicy")).toBe("no-referrer");
    expect(posted).toEqual([]);
  });

  it("answers hello with options and identity, to our origin only", () => {
    open({ accent: "#8A3B12", radius: "20", scheme: "dark", locale: "de-AT" });
    seat.identity = { id: "7", signature: "ab" };
    say({ type: "hello" });
    const knobs = { accent: "#8a3b12", radius: 20, scheme: "dark" };
    const setup = { rapport: 1, type: "setup", knobs, locale: "de-AT", identity: seat.identity, isOpen: true };
    expect(posted).toEqual([[setup, OURS]]);
    expect(seat.host.style.getPropertyValue("--radius")).toBe("20px");
    expect(seat.host.style.getPropertyValue("--scheme")).toBe("dark");
  });

  it("is deaf to other origins, other windows and other words", () => {
    open();
    hear(sealed({ type: "hello" }), { origin: "https://evil.example" });
    hear(sealed({ type: "hello" }), { source: window });
    hear({ type: "hello" });
    hear("hello");
    hear(sealed({ type: "opened" }));
    expect(posted).toEqual([]);
  });

  it("is given up after 15 seconds without a word, and the visitor reads so", () => {
    open();
    vi.advanceTimersByTime(14_999);
    expect(seat.giveUp).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(seat.giveUp).toHaveBeenCalledWith(expect.stringContaining("frame-src"));
    expect([frame(), seat.isOpen]).toEqual([null, false]);
    panel.open();
    expect(frame()).not.toBeNull();
  });

  it("is not given up once it is drawn, nor when it says why not", () => {
    open();
    say({ type: "hello" });
    say({ type: "ready" });
    vi.advanceTimersByTime(60_000);
    panel.destroy();
    seat.host.remove();
    open();
    say({ type: "error", code: "unknown_site", sentence: "No active site." });
    vi.advanceTimersByTime(60_000);
    expect(seat.giveUp).not.toHaveBeenCalled();
    expect(seat.fail).toHaveBeenCalledWith("unknown_site", "No active site.");
    expect(seat.section.className).toContain("refused");
  });
});

describe("what the panel says", () => {
  beforeEach(() => {
    open();
    say({ type: "hello" });
    say({ type: "ready" });
    told = [];
    posted = [];
  });

  it("counts reach the host page, each change once, and opening reads them", () => {
    panel.close();
    say({ type: "unread", count: 2 });
    say({ type: "unread", count: 2 });
    say({ type: "message", sent: 1, received: 2 });
    panel.open();
    expect(told).toEqual([
      ["close", undefined],
      ["unread", { count: 2 }],
      ["message", { sent: 1, received: 2 }],
      ["open", undefined],
      ["unread", { count: 0 }],
    ]);
  });

  it("close closes, and the panel hears each turn", () => {
    say({ type: "close" });
    expect(seat.isOpen).toBe(false);
    panel.open();
    expect(posted.map(([message]) => message.type)).toEqual(["closed", "opened"]);
  });

  it("new options and another identity are handed over", () => {
    seat.identity = { id: "8", signature: "cd" };
    panel.follow();
    expect(posted[0]?.[0]).toMatchObject({ type: "setup", identity: { id: "8", signature: "cd" } });
  });

  it("reset closes, and removes the frame once the panel has forgotten", () => {
    panel.reset();
    expect(posted.map(([message]) => message.type)).toEqual(["closed", "reset"]);
    expect(frame()).not.toBeNull();
    say({ type: "forgotten" });
    expect(frame()).toBeNull();
    expect(told.map(([event]) => event)).toEqual(["close", "reset"]);
  });
});

describe("a reset before any opening", () => {
  it("loads the panel only to forget", () => {
    seat = makeSeat({});
    panel = makePanel(seat);
    panel.reset();
    const target = { postMessage: (message: never, origin: string) => posted.push([message, origin]) };
    Object.defineProperty(frame(), "contentWindow", { value: target });
    say({ type: "hello" });
    expect(posted.map(([message]) => message.type)).toEqual(["reset"]);
    say({ type: "forgotten" });
    expect([frame(), seat.isOpen, told]).toEqual([null, false, [["reset", undefined]]]);
  });
});

describe("the page behind", () => {
  it("gets every property back as it was", () => {
    document.body.setAttribute("style", "color: red; overflow-y: auto !important");
    const before = document.body.getAttribute("style");
    const unlock = lockScroll();
    expect(document.body.style.overflowY).toBe("hidden");
    unlock();
    expect(document.body.style.overflowY).toBe("auto");
    expect(document.body.style.getPropertyPriority("overflow-y")).toBe("important");
    expect(document.body.style.length).toBe(2);
    expect(before).toContain("red");
    document.body.removeAttribute("style");
    lockScroll()();
    expect(document.body.hasAttribute("style")).toBe(false);
  });
});
