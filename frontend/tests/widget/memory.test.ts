// A browser that refuses storage to a frame of another site: the page keeps in memory what it must know.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { keysWith, read, write } from "../../src/shared/local";
import { mendStorage } from "../../src/widget/memory";

function refusing(): Window {
  return Object.defineProperty({} as Window, "localStorage", {
    configurable: true,
    get: () => {
      throw new Error("Access is denied for this document.");
    },
  });
}

beforeEach(() => vi.stubGlobal("window", refusing()));
afterEach(() => vi.unstubAllGlobals());

it("without it nothing is kept", () => {
  write("rapport:shop:token", "t");
  expect(read("rapport:shop:token")).toBeNull();
});

it("with it everything is kept, by its key, until it is removed", () => {
  mendStorage(window);
  write("rapport:shop:token", "t");
  write("rapport:other:token", "u");
  expect(read("rapport:shop:token")).toBe("t");
  expect(keysWith("rapport:shop:")).toEqual(["rapport:shop:token"]);
  write("rapport:shop:token", null);
  expect([read("rapport:shop:token"), keysWith("rapport:shop:")]).toEqual([null, []]);
});

it("a storage that works is left as it is", () => {
  const storage = { getItem: () => "kept" };
  const own = { localStorage: storage } as unknown as Window;
  mendStorage(own);
  expect(own.localStorage).toBe(storage);
});
