// The browser's clock, dice, sockets and wake-up calls, as `socket.ts` asks for them.

import type { Platform, Wire } from "./socket";

export const browserPlatform: Platform = {
  connect: (url) => new WebSocket(url) as unknown as Wire,
  random: () => Math.random(),
  setTimer: (run, afterMs) => window.setTimeout(run, afterMs),
  clearTimer: (timer) => window.clearTimeout(timer),
  onWake: (wake) => {
    const life = new AbortController();
    const on = (target: EventTarget, type: string, run = wake) => target.addEventListener(type, run, life);
    on(window, "online");
    on(window, "pageshow");
    on(document, "resume");
    on(document, "visibilitychange", () => document.visibilityState === "visible" && wake());
    return () => life.abort();
  },
};

/** A socket path of this page's own origin (`/ws/chat/`) as an address. */
export function socketUrl(path: string): string {
  return new URL(path, window.location.href.replace(/^http/, "ws")).href;
}
