// `widget-panel.js`: comes at the first opening. The card on the host page, the panel in an iframe of our origin inside
// it, and the link between the two: who may speak, when to give up, where the focus goes.

import { readToHost, type Scheme, sealed, type ToHost, type ToPanel } from "../hostlink";
import { addStyle, CROSS, draw as drawing, put, set } from "./dom";
import type { ErrorCode } from "./names";
import look from "./panel.css?inline";
import { lockScroll } from "./scroll";
import type { Panel, Seat } from "./seat";

const PATIENCE_MS = 15_000;
const FULL = "(max-width: 479.98px), (max-height: 479.98px)";
/** A viewport this much lower than the window has a keyboard in front of it. */
const KEYBOARD_PX = 80;

/** `off`: no iframe. `wait`: until the panel is drawn. `refused`: the server shows instead why not. */
type State = "off" | "wait" | "ready" | "refused";

export function makePanel(seat: Seat): Panel {
  const { site, base, host, section, launcher } = seat;
  const card = put("div", section, { class: "card", role: "dialog" });
  const x = put("button", card, { class: "x" });
  const life = new AbortController();
  const full = matchMedia(FULL);
  const view = window.visualViewport;
  let state: State = "off";
  let frame: HTMLIFrameElement | null = null;
  let before: Element | null = null;
  let unlock: (() => void) | null = null;
  let hasSpoken = false;
  let isForgetting = false;
  let patience: ReturnType<typeof setTimeout>;

  // --- what is seen ---

  function draw(): void {
    const { label = "Chat", radius = "16", scheme = "auto" } = seat.options;
    for (const one of ["off", "wait", "ready", "refused"]) section.classList.toggle(one, one === state);
    section.classList.toggle("full", full.matches);
    set(card, { "aria-label": label, "aria-modal": full.matches });
    set(x, { "aria-label": label });
    host.style.setProperty("--radius", `${radius}px`);
    host.style.setProperty("--scheme", scheme === "auto" ? "light dark" : scheme);
    seat.draw();
    hold(seat.isOpen && full.matches);
  }

  /** The page behind a full panel stays where it is; the panel stays above the phone's keyboard. */
  function hold(isHeld: boolean): void {
    if (isHeld) unlock ??= lockScroll();
    else {
      unlock?.();
      unlock = null;
    }
    const hasKeyboard = view && view.scale < 1.01 && window.innerHeight - view.height > KEYBOARD_PX;
    host.style.setProperty("--tall", hasKeyboard ? `${view.height}px` : "100dvh");
    host.style.setProperty("--top", hasKeyboard ? `${view.offsetTop}px` : "0px");
  }

  // --- the iframe ---

  function load(): void {
    const address = `${base}chat/${site}/?host=${encodeURIComponent(location.origin)}`;
    state = "wait";
    frame = put("iframe", card, {
      title: seat.options.label ?? "Chat",
      referrerpolicy: "no-referrer",
      allow: "clipboard-write",
      src: address,
    });
    patience = setTimeout(() => {
      seat.giveUp(
        `no answer from ${base} within ${PATIENCE_MS / 1000} s. Is it up, and does this page's frame-src name it?`,
      );
      unload();
      close();
    }, PATIENCE_MS);
  }

  function unload(): void {
    clearTimeout(patience);
    frame?.remove();
    frame = null;
    state = "off";
    seat.unread = 0;
    hasSpoken = false;
    isForgetting = false;
  }

  function settle(next: State): void {
    clearTimeout(patience);
    state = next;
    draw();
    if (seat.isOpen && document.activeElement === host) focus();
  }

  // --- what the panel says ---

  /** Only to a panel that has spoken: before, the frame still holds another page. */
  function post(message: ToPanel): void {
    if (hasSpoken) frame?.contentWindow?.postMessage(sealed(message), base.origin);
  }

  function greet(): void {
    const { accent, radius, scheme, locale = "" } = seat.options;
    const knobs = {
      accent: accent?.toLowerCase() ?? null,
      radius: radius === undefined ? null : Number(radius),
      scheme: (scheme as Scheme | undefined) ?? null,
    };
    post({ type: "setup", knobs, locale, identity: seat.identity, isOpen: seat.isOpen });
  }

  function hear({ source, origin, data }: MessageEvent): void {
    if (!frame || source !== frame.contentWindow || origin !== base.origin) return;
    const message = readToHost(data);
    hasSpoken = true;
    if (message) obey(message);
  }

  function obey(message: ToHost): void {
    switch (message.type) {
      case "hello":
        if (isForgetting) post({ type: "reset" });
        else greet();
        break;
      case "ready":
        settle("ready");
        break;
      case "close":
        close();
        break;
      case "forgotten":
        forget();
        break;
      case "error":
        seat.fail(message.code as ErrorCode, message.sentence);
        if (state === "wait") settle("refused");
        break;
      case "message":
        seat.tell("message", { sent: message.sent, received: message.received });
        break;
      case "unread":
        count(message.count);
    }
  }

  function count(unread: number): void {
    if (unread === seat.unread) return;
    seat.unread = unread;
    seat.draw();
    seat.tell("unread", { count: unread });
  }

  function forget(): void {
    unload();
    if (seat.isOpen) load();
    draw();
    seat.tell("reset");
  }

  // --- open and close ---

  function open(): void {
    if (seat.isOpen) return;
    seat.closeOthers();
    before = document.activeElement;
    seat.isOpen = true;
    if (state === "refused") unload();
    if (!frame) load();
    draw();
    focus();
    seat.tell("open");
    count(0);
  }

  function close(): void {
    if (!seat.isOpen) return;
    const hadFocus = document.activeElement === host;
    seat.isOpen = false;
    draw();
    post({ type: "closed" });
    if (hadFocus) back().focus({ preventScroll: true });
    seat.tell("close");
  }

  /** The frame first: what the panel focuses in a frame without the focus is lost. */
  function focus(): void {
    (state === "ready" ? frame : x)?.focus({ preventScroll: true });
    if (state === "ready") post({ type: "opened" });
  }

  /** What had the focus before, where it is still there. */
  function back(): HTMLElement {
    const isThere = before?.isConnected && before !== host && before !== document.body;
    return isThere ? (before as HTMLElement) : launcher;
  }

  function listen(target: EventTarget | null, type: string, run: (event: never) => void): void {
    target?.addEventListener(type, run as EventListener, { signal: life.signal });
  }

  addStyle(seat.root, look);
  drawing(x, CROSS);
  listen(window, "message", hear);
  listen(full, "change", draw);
  listen(view, "resize", draw);
  listen(view, "scroll", draw);
  listen(x, "click", close);
  listen(host, "keydown", ({ key }: KeyboardEvent) => key === "Escape" && close());

  return {
    open,
    close,
    follow() {
      draw();
      if (state === "ready") greet();
    },
    reset() {
      close();
      if (!frame) load();
      isForgetting = true;
      post({ type: "reset" });
    },
    destroy() {
      life.abort();
      unload();
      hold(false);
    },
  };
}
