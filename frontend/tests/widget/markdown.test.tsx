// @vitest-environment happy-dom
// A finished answer, laid out: what Markdown may do, and what no text can make of it (A14).

import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, describe, expect, it } from "vitest";
import { MarkdownText, safeAddress } from "../../src/widget/Markdown";

let root = document.createElement("div");

async function drawn(text: string): Promise<HTMLElement> {
  root = document.createElement("div");
  document.body.append(root);
  await act(() => render(<MarkdownText text={text} />, root));
  return root;
}

afterEach(() => {
  render(null, root);
  root.remove();
});

const ALLOWED = ["a", "blockquote", "code", "div", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong"];
const TABLE = ["table", "tbody", "td", "th", "thead", "tr", "ul"];

describe("Markdown", () => {
  it("lays out what models write", async () => {
    await drawn(
      "# Steps\n\nDo **this** _now_:\n\n1. breathe\n2. rest\n   - a little\n\n> said\n\n`code`\n\n```\npre\n```\n\n---",
    );
    const shown = (selector: string) => [...root.querySelectorAll(selector)].map((node) => node.textContent);
    expect(shown(".heading")).toEqual(["Steps"]);
    expect(shown("strong")).toEqual(["this"]);
    expect(shown("em")).toEqual(["now"]);
    expect(shown("ol > li")).toHaveLength(2);
    expect(shown("ol ul > li")).toEqual(["a little"]);
    expect(shown("blockquote")).toEqual(["said"]);
    expect(shown("pre code")).toEqual(["pre"]);
    expect(root.querySelectorAll("hr")).toHaveLength(1);
  });

  it("keeps plain paragraphs and line breaks to the letter", async () => {
    const text = "One line\nand another.\n\nA second paragraph.";
    expect((await drawn(text)).querySelector(".text")?.textContent).toBe(text);
  });

  it("goes on with a list from the number that was written", async () => {
    expect((await drawn("3. third\n4. fourth")).querySelector("ol")?.start).toBe(3);
  });

  it("shows a table in a frame of its own", async () => {
    await drawn("| a | b |\n|---|---|\n| 1 | 2 |");
    expect(root.querySelectorAll(".table th")).toHaveLength(2);
    expect(root.querySelectorAll(".table td")).toHaveLength(2);
  });

  it("opens web and mail links in a tab of their own that knows nothing of the chat", async () => {
    await drawn("[site](https://example.org/a) and <mail@example.org>");
    const links = [...root.querySelectorAll("a")];
    expect(links.map((link) => link.getAttribute("href"))).toEqual([
      "https://example.org/a",
      "mailto:mail@example.org",
    ]);
    for (const link of links) {
      expect(link.rel).toBe("noopener noreferrer nofollow");
      expect(link.target).toBe("_blank");
    }
  });

  it.each([
    "[go](javascript:alert(1))",
    "[go](JaVaScRiPt:alert(1))",
    "[go](  javascript:alert(1))",
    "[go](&#106;avascript:alert(1))",
    "[go](java\tscript:alert(1))",
    "[go](data:text/html,<script>alert(1)</script>)",
    "[go](vbscript:x)",
    "[go](file:///etc/passwd)",
    "[go](blob:https://example.org/1)",
    "[go](//evil.example)",
    "[go](/admin/)",
    "[go][1]\n\n[1]: javascript:alert(1)",
    "![x](https://evil.example/pixel.png)",
    '![x](x" onerror="alert(1))',
    "[![x](javascript:alert(1))](javascript:alert(2))",
    "<a href='javascript:alert(1)'>x</a>",
    "<img src=x onerror=alert(1)>",
    "**<svg onload=alert(1)>**",
    "- <iframe srcdoc='x'></iframe>",
    "> <script>alert(1)</script>",
    "| <b onclick=alert(1)>x</b> | y |\n|---|---|\n| <style>*{}</style> | z |",
    "<!-- hidden -->",
    "`</code><script>alert(1)</script>`",
    "```html\n</code></pre><script>alert(1)</script>\n```",
  ])("makes nothing dangerous of %j", async (text) => {
    await drawn(text);
    const names = [...root.querySelectorAll("*")].map((node) => node.localName);
    expect([...ALLOWED, ...TABLE]).toEqual(expect.arrayContaining(names));
    expect([...root.querySelectorAll("a")].filter((link) => !/^(https?|mailto):/.test(link.href))).toEqual([]);
    for (const node of root.querySelectorAll("*")) {
      const own = node.getAttributeNames();
      expect(["class", "dir", "href", "rel", "start", "tabindex", "target", "title"]).toEqual(
        expect.arrayContaining(own),
      );
    }
  });

  it.each(["[go](javascript:alert(1))", "![x](https://evil.example/p.png)", "<!-- hidden -->", "[1]: https://e.org"])(
    "hides nothing that was written: %j",
    async (text) => {
      expect((await drawn(text)).textContent).toBe(text);
    },
  );

  it("keeps a text plain that is nested too deeply or too long to be taken apart", async () => {
    for (const text of [`${">".repeat(50_000)} x`, "a ".repeat(20_000), `${"> ".repeat(3_000)}deep`]) {
      await drawn(text);
      expect(root.textContent).toContain(text.trim().slice(-5));
    }
  });

  it("is quick on texts that make a parser try again and again", async () => {
    const began = performance.now();
    for (const text of ["*a ".repeat(3_999), "[".repeat(12_000), "`".repeat(11_999), "_*".repeat(6_000)]) {
      await drawn(text);
    }
    expect(performance.now() - began).toBeLessThan(8_000);
  });
});

describe("an address", () => {
  it("is one of the web or of a mailbox, or none", () => {
    expect(safeAddress("https://example.org")).toBe("https://example.org/");
    expect(safeAddress("mailto:a@example.org")).toBe("mailto:a@example.org");
    for (const href of ["javascript:1", "data:,x", "/here", "", "tel:1"]) expect(safeAddress(href)).toBeNull();
  });
});
