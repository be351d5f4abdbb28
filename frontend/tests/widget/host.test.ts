// The panel's ears: one window, one origin, and nobody else.

import { describe, expect, it, vi } from "vitest";
import { sealed, type ToPanel } from "../../src/hostlink";
import { embeddingOrigin, HostLink, type LinkWindow } from "../../src/widget/link";

const SHOP = "https://shop.example";

function world() {
  const parent = { postMessage: vi.fn() };
  let hear: (event: MessageEvent) => void = () => {};
  const own: LinkWindow = {
    parent,
    addEventListener: (_, listener) => {
      hear = listener;
    },
  };
  const heard: ToPanel[] = [];
  new HostLink(own, SHOP).start((message) => heard.push(message));
  const speak = (source: unknown, origin: string) =>
    hear({ source, origin, data: sealed({ type: "opened" }) } as MessageEvent);
  return { parent, heard, speak };
}

describe("link to the host page", () => {
  it("says hello to the listed origin and to no other", () => {
    expect(world().parent.postMessage.mock.calls).toEqual([[{ rapport: 1, type: "hello" }, SHOP]]);
  });

  it("hears its embedding page", () => {
    const { parent, heard, speak } = world();
    speak(parent, SHOP);
    expect(heard).toEqual([{ type: "opened" }]);
  });

  it("is deaf to other origins, other windows and other words", () => {
    const { parent, heard, speak } = world();
    speak(parent, "https://evil.example");
    speak(parent, "null");
    speak({}, SHOP);
    speak(null, SHOP);
    expect(heard).toEqual([]);
  });

  it.each([
    ["a page of its own", true, `?host=${SHOP}`, [SHOP]],
    ["a frame that the loader did not make", false, "", [SHOP]],
    ["a page that the server does not list", false, "?host=https://evil.example", [SHOP]],
    ["a list that is empty", false, `?host=${SHOP}`, []],
  ])("is none for %s", (_, isTop, search, origins) => {
    const own = { location: { search } } as unknown as Window;
    Object.assign(own, { parent: isTop ? own : {} });
    expect(embeddingOrigin(own, origins)).toBeNull();
  });

  it("is there for a listed page in a widget", () => {
    const own = { location: { search: `?host=${encodeURIComponent(SHOP)}` }, parent: {} } as unknown as Window;
    expect(embeddingOrigin(own, [SHOP])).toBe(SHOP);
  });
});
