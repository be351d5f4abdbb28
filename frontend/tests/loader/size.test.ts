// What a host page pays: measured on the scripts as they are built and served.

import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { buildScript } from "../../build/loader";

const LIMITS_BYTES = { "widget.js": 3_000, "widget-panel.js": 3_000 } as const;

describe("size of the widget's scripts", () => {
  it.each(["widget.js", "widget-panel.js"] as const)(
    "%s is at most 3 kB compressed, and one script",
    async (name) => {
      const script = await buildScript(name);
      expect(gzipSync(script, { level: 9 }).length).toBeLessThanOrEqual(LIMITS_BYTES[name]);
      expect(script).not.toMatch(/\bfrom\s*["'`]|\beval\b|new Function|innerHTML/);
    },
    30_000,
  );

  it("widget.js is a classic script that leaves no names behind", async () => {
    const script = await buildScript("widget.js");
    expect(script).toMatch(/^\(function\(\)\{.*\}\)\(\);?\s*$/s);
  }, 30_000);
});
