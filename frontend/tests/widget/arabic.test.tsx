// @vitest-environment happy-dom
// Every word of the panel goes through `t`, and Arabic has every one of them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { inUnit, speak, t } from "../../src/i18n";
import { App } from "../../src/widget/App";
import { readConfig } from "../../src/widget/config";
import { chooseLocale, directionOf, speakIn } from "../../src/widget/locale";
import { actions, ending, formatted, sentences, settings } from "../../src/widget/parts";
import { keepFor } from "../../src/widget/storage";
import { ChatStore } from "../../src/widget/store";
import { AR } from "../../src/widget/texts/ar";
import { message, welcome } from "../make";
import { settle, TestPlatform } from "../sockets";

afterEach(async () => {
  await speakIn("en");
});

const SOURCES = join(import.meta.dirname, "..", "..", "src");

function panelSources(): string {
  const files = readdirSync(SOURCES, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/console|loader|texts$/.test(entry.parentPath),
  );
  return files.map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8")).join("\n");
}

describe("the Arabic words", () => {
  const source = panelSources();

  it("are there for every sentence that the code says", () => {
    const said = [...source.matchAll(/\bt\(\s*"((?:[^"\\]|\\.)*)"/g)].map((found) => found[1] ?? "");
    expect(said.length).toBeGreaterThan(80);
    expect(said.filter((sentence) => !(sentence in AR))).toEqual([]);
  });

  it("translate nothing that the code no longer says", () => {
    expect(
      Object.keys(AR).filter((sentence) => !source.includes(`"${sentence}"`) && !source.includes(`: "${sentence}`)),
    ).toEqual([]);
  });

  it("keep every hole and are written in Arabic letters", () => {
    for (const [english, arabic] of Object.entries(AR)) {
      const holes = (text: string) => (text.match(/\{\w+\}/g) ?? []).toSorted();
      expect(holes(arabic), english).toEqual(holes(english));
      expect(arabic, english).toMatch(/[\u0600-\u06ff]/);
    }
  });

  it("fill their holes and count as Arabic counts", async () => {
    await speakIn("ar");
    expect(t("You are number {place} in line.", { place: 3 })).toBe("ترتيبك في الدور: 3.");
    expect(inUnit(3, "second")).not.toBe(inUnit(11, "second"));
  });
});

describe("the language", () => {
  it("is the visitor's where the site speaks it, else the site's, else English", () => {
    expect(chooseLocale([], ["ar-EG", "en"])).toBe("ar-EG");
    expect(chooseLocale([], ["de-DE", "en-GB"])).toBe("en-GB");
    expect(chooseLocale([], ["de-DE"])).toBe("en");
    expect(chooseLocale(["en"], ["ar"])).toBe("en");
    expect(chooseLocale(["ar", "en"], ["fr"])).toBe("ar");
    expect(chooseLocale(["de", "en"], ["de"])).toBe("en");
    expect(chooseLocale(["de"], [])).toBe("en");
  });

  it("turns the page around where it reads from the right", async () => {
    await speakIn("ar-EG");
    expect([document.documentElement.lang, document.documentElement.dir]).toEqual(["ar-EG", "rtl"]);
    await speakIn("en-GB");
    expect([document.documentElement.lang, document.documentElement.dir]).toEqual(["en-GB", "ltr"]);
    expect([directionOf("fa"), directionOf("arn"), directionOf("ar")]).toEqual(["rtl", "ltr", "rtl"]);
  });
});

describe("the page", () => {
  beforeAll(() => Promise.all([actions.load(), formatted.load(), ending.load(), settings.load(), sentences()]));

  it("says nothing of its own in English once another language is chosen", async () => {
    const marked = new Proxy({}, { get: (_, sentence) => `⟦${String(sentence)}⟧` });
    speak("ar", marked as Record<string, string>);
    const platform = new TestPlatform();
    const root = document.createElement("div");
    document.body.append(root);
    const keep = keepFor("demo");
    const api = {
      start: async () => ({ token: "t", conversation: "c", expiresAt: null }),
      call: async () => new Response("{}"),
    };
    const store = new ChatStore({ socketUrl: "ws://x/", platform, api, keep, now: () => 0, newId: () => "1" });
    const config = { ...readConfig(document.createElement("div"), document), siteName: "⟦⟧" };
    await act(() => render(<App store={store} config={config} keep={keep} />, root));
    await act(async () => {
      store.start();
      await settle();
      platform.wire.open();
      platform.wire.receive(welcome());
    });
    const seen = () => {
      const texts: string[] = [];
      const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) texts.push(walk.currentNode.textContent ?? "");
      for (const node of root.querySelectorAll("[aria-label], [title]")) {
        texts.push(node.getAttribute("aria-label") ?? "", node.getAttribute("title") ?? "");
      }
      return texts;
    };
    const english = () =>
      seen().filter((text) => /[A-Za-z]{2,}/.test(text.replaceAll(/⟦[^⟧]*⟧/g, "")) && text !== "SOS");
    expect(english()).toEqual([]);
    const line = { name: "1", phone: "1 2", text: "", url: "https://e.org", hours: "", country: "" };
    const reply = message({
      id: "r1",
      seq: 2,
      changed_seq: 2,
      kind: "reply",
      parent: "v1",
      text: "⟦⟧",
      code: "cut_off",
    });
    await act(() => {
      platform.wire.receive({ type: "message.changed", message: message({ id: "v1", text: "⟦⟧" }) });
      platform.wire.receive({ type: "message.changed", message: reply });
      platform.wire.receive({ type: "safety.card", level: "high", resources: [line], staffed: false });
      platform.wire.receive({ type: "version.changed", policy: "p" });
      platform.wire.receive({ type: "error", code: "rate", retry_after: 3, trace: "1", client_id: null });
    });
    expect(english()).toEqual([]);
    for (const button of root.querySelectorAll<HTMLButtonElement>(".help-button, .bar .icon-button")) {
      await act(async () => {
        button.click();
        await settle();
      });
      expect(english()).toEqual([]);
    }
    store.leave();
    render(null, root);
  });
});
