// How much a visitor's page fetches before its first finished answer, in a widget or on its own: 25 kB at most as it is
// served, by a real build.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";

const run = promisify(execFile);

const MOST_BYTES = 25 * 1024;
const ENTRY = "src/widget/main.ts";

interface Part {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
  readonly css?: readonly string[];
}

let folder: string;
let manifest: Readonly<Record<string, Part>>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rapport-front-"));
  const root = join(import.meta.dirname, "..");
  // The real command in a process of its own: within a test run Vite builds something else.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  await run("npm", ["run", "build", "--", "--outDir", folder, "--emptyOutDir"], { cwd: root, env });
  manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as Record<string, Part>;
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The entry and all that it imports at once, with their style sheets. */
function fetchedWith(name: string, seen = new Set<string>()): ReadonlySet<string> {
  const part = manifest[name];
  if (!part) throw new Error(`The build has no ${name}.`);
  if (seen.has(part.file)) return seen;
  for (const file of [part.file, ...(part.css ?? [])]) seen.add(file);
  for (const other of part.imports ?? []) fetchedWith(other, seen);
  return seen;
}

function textOf(files: Iterable<string>): string {
  return [...files].map((file) => readFileSync(join(folder, file), "utf8")).join("\n");
}

function sizesOf(files: Iterable<string>): readonly (readonly [string, number])[] {
  return [...files].map((file) => [file, statSync(join(folder, `${file}.gz`)).size] as const);
}

function sumOf(sizes: readonly (readonly [string, number])[]): number {
  return sizes.reduce((total, [, size]) => total + size, 0);
}

it("the page fetches at most 25 kB before its first finished answer", () => {
  const sizes = sizesOf(fetchedWith(ENTRY));
  expect(sumOf(sizes), JSON.stringify(sizes)).toBeLessThanOrEqual(MOST_BYTES);
});

it("what a widget needs is in the same file, and what only some visitors need is not", () => {
  const first = textOf(fetchedWith(ENTRY));
  expect([...fetchedWith(ENTRY)]).toEqual(["chat.js", "chat.css"]);
  expect(first).toContain("identity_required");
  for (const later of ["src/sha256.ts", "src/widget/look.ts", "src/widget/texts/ar.ts"]) {
    expect(manifest[ENTRY]?.dynamicImports).toContain(later);
  }
});

it("what is served is what was built", () => {
  for (const file of fetchedWith(ENTRY)) {
    expect(gunzipSync(readFileSync(join(folder, `${file}.gz`))).equals(readFileSync(join(folder, file)))).toBe(true);
  }
});

it("what helps in a crisis comes with the first file, what lays answers out does not", () => {
  const first = textOf(fetchedWith(ENTRY));
  expect(first).toContain("call your local emergency number now");
  expect(first).toContain("You do not have to carry this alone");
  expect(first).not.toContain("blockquote");
  expect(first).not.toContain("Download my conversation");
});

it("the later files are files of their own", () => {
  expect(manifest[ENTRY]?.dynamicImports).toEqual(
    expect.arrayContaining(["src/widget/answer.ts", "src/widget/sheets.ts", "src/sentences.ts"]),
  );
});
