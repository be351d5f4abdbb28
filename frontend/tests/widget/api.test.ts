import { describe, expect, it } from "vitest";
import { localeOf } from "../../src/widget/api";

describe("localeOf", () => {
  it.each([
    ["en-US", "en-US"],
    ["de", "de"],
    ["zh-Hant-TW", "zh-Hant-TW"],
    ["en-US-u-hc-h12", "en-US"],
    ["en-150", "en"],
    ["", ""],
    ["C.UTF-8", ""],
  ])("reads %j as %j", (language, locale) => {
    expect(localeOf(language)).toBe(locale);
  });
});
