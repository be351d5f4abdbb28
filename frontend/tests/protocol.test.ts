// The TypeScript half of the wire's examples; the Python half is `tests/chat/test_wire_examples.py`.

import { describe, expect, it } from "vitest";
import { ShapeError } from "../src/json";
import { type ClientEvent, codePoints, encode, MAX_TEXT_CHARS, parseServerEvent, problemOf } from "../src/protocol";
import { badClient, badServer, clientExamples, frameOf, serverExamples } from "./wire";

describe("the wire's examples", () => {
  it.each(serverExamples)("reads a server event with every field: $type", (example) => {
    expect(parseServerEvent(example)).toEqual(example);
  });

  it.each(clientExamples)("writes a client event as its example: $type", (example) => {
    expect(JSON.parse(encode(example as unknown as ClientEvent))).toEqual(example);
  });

  it.each(badServer)("refuses a broken server event: $why", ({ event }) => {
    expect(() => parseServerEvent(event)).toThrow(ShapeError);
  });

  it("knows each kind of server event by an example", () => {
    const types = new Set(serverExamples.map((example) => example.type));
    expect(types.size).toBe(14);
  });

  const texts = badClient.filter((bad) => ["empty_text", "text_too_long", "text_invalid"].includes(bad.code));

  it.each(texts)("says before sending what the server would say: $why", (bad) => {
    const sent = JSON.parse(frameOf(bad)) as { text: string };
    expect(problemOf(sent.text)).toBe(bad.code);
  });
});

describe("parseServerEvent", () => {
  it("leaves out an event of a newer server", () => {
    expect(parseServerEvent({ type: "reply.reasoned" })).toBeNull();
    expect(parseServerEvent({ type: "toString" })).toBeNull();
  });

  it("never repeats what people wrote in its errors", () => {
    const secret = "my secret";
    const broken = { type: "message.changed", message: { id: "1", text: secret, kind: secret } };
    expect(() => parseServerEvent(broken)).toThrow(ShapeError);
    try {
      parseServerEvent(broken);
    } catch (error) {
      expect(String(error)).not.toContain(secret);
    }
  });
});

describe("problemOf", () => {
  it("takes the longest text that the server takes, and not one more", () => {
    expect(problemOf("🫖".repeat(MAX_TEXT_CHARS))).toBeNull();
    expect(problemOf(`${"🫖".repeat(MAX_TEXT_CHARS)}x`)).toBe("text_too_long");
    expect(problemOf(`  ${"x".repeat(MAX_TEXT_CHARS)}  `)).toBeNull();
  });

  it("refuses a lone surrogate", () => {
    expect(problemOf("a\ud83d")).toBe("text_invalid");
  });

  it("takes emoji, other scripts and joined letters", () => {
    for (const text of ["👨‍👩‍👧", "مرحبا", "ů", "?"]) expect(problemOf(text)).toBeNull();
  });
});

describe("codePoints", () => {
  it("counts as Python does", () => {
    expect(codePoints("")).toBe(0);
    expect(codePoints("a😔b")).toBe(3);
    expect(codePoints("👨‍👩‍👧")).toBe(5);
    expect(codePoints("\ud83d")).toBe(1);
  });
});
