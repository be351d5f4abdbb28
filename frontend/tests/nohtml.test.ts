// Field report A14: what people and models write is never parsed as HTML. No file of ours has a way to do it.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const SINKS =
  /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|srcdoc|createContextualFragment|DOMParser|setHTML|\beval\(|new Function\(|setAttribute\(\s*["']on/;

function sourcesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}

describe("the sources", () => {
  const files = sourcesIn(join(import.meta.dirname, "..", "src"));

  it("are found", () => {
    expect(files.length).toBeGreaterThan(40);
  });

  it.each(files)("%s parses no HTML", (file) => {
    expect(readFileSync(file, "utf8")).not.toMatch(SINKS);
  });
});
