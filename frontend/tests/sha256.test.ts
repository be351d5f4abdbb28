import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { sha256 } from "../src/sha256";

it("agrees with the published vectors", () => {
  expect(sha256("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect(sha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

it("agrees with another implementation at every length around a block's edge and for any text", () => {
  const other = (text: string) => createHash("sha256").update(text, "utf8").digest("hex");
  for (let length = 0; length < 200; length += 1) expect(sha256("x".repeat(length))).toBe(other("x".repeat(length)));
  fc.assert(fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), (text) => sha256(text) === other(text)));
});
