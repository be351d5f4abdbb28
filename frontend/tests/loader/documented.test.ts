// @vitest-environment happy-dom
// `docs/widget.md` names every verb, option, event and error, and none that is not there; its snippets run.

import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { ERRORS, EVENTS, OPTIONS, VERBS } from "../../src/loader/names";

const PAGE = readFileSync("../docs/widget.md", "utf8");
let complained: MockInstance;

/** The first cells of the rows of a chapter's table, without their marks. */
function rows(chapter: string): readonly string[] {
  const text = PAGE.split(/^## /m).find((part) => part.startsWith(chapter)) ?? "";
  const lines = text.split("\n").filter((line) => line.startsWith("| `"));
  return lines.map((line) => /`([^`]+)`/.exec(line)?.[1] ?? "");
}

function snippets(language: string): readonly string[] {
  return [...PAGE.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].map(([, text]) => text ?? "");
}

describe("the widget's page", () => {
  it("names the verbs", () => {
    const named = rows("Calls").map((call) => /^rapport\("(\w+)"/.exec(call)?.[1]);
    expect(named).toEqual([...VERBS]);
  });

  it("names the options, each with its attribute", () => {
    expect(rows("Options")).toEqual(Object.keys(OPTIONS));
    for (const name of Object.keys(OPTIONS)) {
      const attribute = `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
      expect(PAGE).toContain(`| \`${name}\` | \`${attribute}\` |`);
    }
  });

  it("names the events and the errors", () => {
    expect(rows("Events")).toEqual([...EVENTS]);
    expect(rows("Errors").toSorted()).toEqual(ERRORS.toSorted());
  });
});

/** As a script of the page: what it names is what the window has. */
function run(code: string, rapport: unknown): void {
  new Function("rapport", code)(rapport);
}

describe("the page's snippets", () => {
  beforeEach(() => {
    window.rapport?.("destroy");
    delete window.rapport;
    document.head.replaceChildren();
    vi.resetModules();
    complained = vi.spyOn(console, "error").mockImplementation(() => {});
  });

  const tags = () =>
    snippets("html").flatMap((html) => {
      const holder = document.createElement("template");
      holder.innerHTML = html;
      return [...holder.content.querySelectorAll<HTMLScriptElement>("script")];
    });

  it("every script tag makes a widget, with options that are all taken", async () => {
    const withSite = tags().filter((tag) => tag.dataset.site !== undefined);
    expect(withSite.length).toBeGreaterThan(1);
    for (const tag of withSite) {
      vi.resetModules();
      delete window.rapport;
      Object.defineProperty(document, "currentScript", { value: tag, configurable: true });
      await import("../../src/loader/index");
      expect(document.documentElement.lastElementChild?.shadowRoot?.querySelector(".launcher")).not.toBeNull();
      (window as Window).rapport?.("destroy");
    }
    Object.defineProperty(document, "currentScript", { value: null, configurable: true });
    expect(complained).not.toHaveBeenCalled();
  });

  it("every call is one that the loader takes, before it came and after", async () => {
    const inline = tags().flatMap((tag) => (tag.dataset.site === undefined ? [tag.textContent ?? ""] : []));
    const calls = [...inline, ...snippets("js")];
    expect(calls.length).toBeGreaterThan(1);
    for (const code of calls) run(code, window.rapport ?? (() => {}));
    await import("../../src/loader/index");
    for (const code of calls) run(code, window.rapport);
    expect(complained).not.toHaveBeenCalled();
  });
});
