// What crosses between a host page and the panel: only well-formed messages of ours are read, everything else is nothing.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readToHost, readToPanel, sealed, type ToHost, type ToPanel } from "../src/hostlink";

const TO_HOST: readonly ToHost[] = [
  { type: "hello" },
  { type: "ready" },
  { type: "close" },
  { type: "forgotten" },
  { type: "unread", count: 3 },
  { type: "message", sent: 1, received: 0 },
  { type: "error", code: "unknown_site", sentence: "No active site has this slug." },
];
const SETUP: ToPanel = {
  type: "setup",
  knobs: { accent: "#17696a", radius: 12, scheme: "dark" },
  locale: "de-AT",
  identity: { id: "7", signature: "ab" },
  isOpen: true,
};
const TO_PANEL: readonly ToPanel[] = [
  SETUP,
  { ...SETUP, identity: null, knobs: { accent: null, radius: null, scheme: null } },
  { type: "opened" },
  { type: "closed" },
  { type: "reset" },
];

describe("messages between host page and panel", () => {
  it.each(TO_HOST)("a panel's $type arrives as it was sent", (message) => {
    expect(readToHost(sealed(message))).toEqual(message);
  });

  it.each(TO_PANEL)("a host page's $type arrives as it was sent", (message) => {
    expect(readToPanel(sealed(message))).toEqual(message);
  });

  it("carries nothing beyond its own fields", () => {
    const padded = { ...sealed({ type: "message", sent: 1, received: 1 }), text: "what somebody wrote" };
    expect(readToHost(padded)).toEqual({ type: "message", sent: 1, received: 1 });
  });

  it("is nothing without the mark, whatever else it is", () => {
    for (const message of [...TO_HOST, ...TO_PANEL]) {
      expect(readToHost(message)).toBeNull();
      expect(readToPanel(message)).toBeNull();
    }
  });

  it("is nothing where the other side's words come in", () => {
    for (const message of TO_PANEL) expect(readToHost(sealed(message))).toBeNull();
    for (const message of TO_HOST) expect(readToPanel(sealed(message))).toBeNull();
  });

  it.each([{ count: -1 }, { count: 1.5 }, { count: "3" }, { count: Number.NaN }, {}])(
    "a count that is none is nothing: %j",
    (fields) => {
      expect(readToHost({ rapport: 1, type: "unread", ...fields })).toBeNull();
    },
  );

  it.each([
    { knobs: { accent: "red", radius: null, scheme: null } },
    { knobs: { accent: "#17696a;background:url(x)", radius: null, scheme: null } },
    { knobs: { accent: null, radius: 33, scheme: null } },
    { knobs: { accent: null, radius: null, scheme: "sepia" } },
    { knobs: null },
    { locale: "e".repeat(36) },
    { locale: 7 },
    { isOpen: "yes" },
    { identity: { id: "", signature: "ab" } },
    { identity: { id: "x".repeat(129), signature: "ab" } },
    { identity: { id: "7" } },
    { identity: undefined },
  ])("a setup with a field that it cannot have is nothing: %j", (fields) => {
    expect(readToPanel({ ...sealed(SETUP), ...fields })).toBeNull();
  });

  it("never throws, whatever another script posts", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (data, type) => {
        for (const one of [data, { rapport: 1, type }, Object.assign({ rapport: 1 }, Object(data))]) {
          readToHost(one);
          readToPanel(one);
        }
      }),
    );
  });
});
