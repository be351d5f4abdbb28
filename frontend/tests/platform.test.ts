// @vitest-environment happy-dom
// When a page wakes up: what the socket hears from a real browser's events.

import { expect, it, vi } from "vitest";
import { browserPlatform, socketUrl } from "../src/platform";

it("every event of a page that comes back to life wakes the line, and none after it was left", () => {
  const wake = vi.fn();
  const stop = browserPlatform.onWake(wake);
  window.dispatchEvent(new Event("online"));
  window.dispatchEvent(new Event("pageshow"));
  document.dispatchEvent(new Event("resume"));
  document.dispatchEvent(new Event("visibilitychange"));
  expect(wake).toHaveBeenCalledTimes(4);
  stop();
  for (const name of ["online", "pageshow"]) window.dispatchEvent(new Event(name));
  for (const name of ["resume", "visibilitychange"]) document.dispatchEvent(new Event(name));
  expect(wake).toHaveBeenCalledTimes(4);
});

it("a page that goes out of sight wakes nothing", () => {
  const wake = vi.fn();
  const stop = browserPlatform.onWake(wake);
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  document.dispatchEvent(new Event("visibilitychange"));
  expect(wake).not.toHaveBeenCalled();
  stop();
});

it("a socket path becomes an address of this page's own origin", () => {
  expect(socketUrl("/ws/chat/")).toMatch(/^wss?:\/\/.*\/ws\/chat\/$/);
});
