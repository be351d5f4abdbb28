// @vitest-environment happy-dom
// `window.rapport` on a host page before anything is opened: calls, options, events, several sites.

import { beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import type { Rapport } from "../../src/loader/index";
import { EVENTS, type OPTIONS, VERBS } from "../../src/loader/names";

let rapport: Rapport;
let complained: MockInstance;

function launchers(): readonly HTMLElement[] {
  return [...document.documentElement.children].flatMap((host) =>
    Array.from(host.shadowRoot?.querySelectorAll<HTMLElement>(".launcher") ?? []),
  );
}

const hostOf = (launcher = launchers()[0] as HTMLElement) => (launcher.getRootNode() as ShadowRoot).host as HTMLElement;

async function load(): Promise<void> {
  vi.resetModules();
  await import("../../src/loader/index");
  rapport = window.rapport as Rapport;
}

beforeEach(async () => {
  window.rapport?.("destroy");
  delete window.rapport;
  complained = vi.spyOn(console, "error").mockImplementation(() => {});
});

describe("calls before the script came", () => {
  it("are made up for in their order, after the widget of the script's own tag", async () => {
    const heard: string[] = [];
    const stub: Rapport = (...call) => {
      stub.q = [...(stub.q ?? []), call];
    };
    window.rapport = stub;
    stub("on", "ready", () => heard.push("ready"));
    stub("init", { site: "shop", label: "Ask" });
    await load();
    expect(heard).toEqual(["ready"]);
    expect(launchers().map((launcher) => launcher.getAttribute("aria-label"))).toEqual(["Ask"]);
  });

  it("a second script finds the first one's door and puts no second widget", async () => {
    await load();
    rapport("init", { site: "shop" });
    const door = window.rapport;
    await load();
    expect(window.rapport).toBe(door);
    window.rapport?.("init", { site: "shop" });
    expect(launchers()).toHaveLength(1);
  });
});

describe("options", () => {
  beforeEach(load);

  const SHOWN: {
    readonly [name in keyof typeof OPTIONS]: readonly [string, (launcher: HTMLElement) => unknown, unknown];
  } = {
    site: ["shop", () => launchers().length, 1],
    position: ["left", (launcher) => launcher.parentElement?.className, "left"],
    accent: ["#8A3B12", (launcher) => hostOf(launcher).style.getPropertyValue("--accent"), "#8A3B12"],
    radius: ["20", () => 1, 1], // seen on the card: panel.test.ts
    scheme: ["dark", () => 1, 1], // likewise
    label: ["Ask the gardener", (launcher) => launcher.getAttribute("aria-label"), "Ask the gardener"],
    locale: ["de-AT", () => 1, 1], // likewise
    zIndex: ["900", (launcher) => hostOf(launcher).style.getPropertyValue("--z"), "900"],
    launcher: ["hidden", (launcher) => launcher.hidden, true],
  };

  it.each(Object.entries(SHOWN))("%s is taken", (name, [value, seen, expected]) => {
    rapport("init", { site: "shop", [name]: value });
    expect(complained).not.toHaveBeenCalled();
    expect(seen(launchers()[0] as HTMLElement)).toBe(expected);
  });

  it.each([
    { position: "top" },
    { accent: "red" },
    { accent: "#17696a;x" },
    { radius: 33 },
    { radius: -1 },
    { scheme: "sepia" },
    { label: "" },
    { zIndex: "auto" },
    { launcher: "no" },
    { colour: "#17696a" },
  ])("%j is refused with a word, and the others hold", (wrong) => {
    const facts: unknown[] = [];
    rapport("on", "error", (event: CustomEvent) => facts.push(event.detail));
    rapport("init", { site: "shop", label: "Ask", ...wrong });
    expect(facts).toEqual([{ site: "shop", code: "option_invalid" }]);
    expect(complained).toHaveBeenCalledWith(expect.stringContaining(Object.keys(wrong)[0] ?? ""));
    expect(launchers()).toHaveLength(1);
  });

  it("change the widget that is there", () => {
    rapport("init", { site: "shop", label: "Ask" });
    rapport("init", { site: "shop", accent: "#ffffff" });
    expect(launchers()).toHaveLength(1);
    expect(launchers()[0]?.getAttribute("aria-label")).toBe("Ask");
    expect(hostOf().style.getPropertyValue("--on-accent")).toBe("#10201f");
  });
});

describe("verbs and events", () => {
  beforeEach(load);

  it("knows each name that it says it knows, and says so of others", () => {
    for (const verb of VERBS) rapport(verb, verb === "on" || verb === "off" ? "open" : {}, () => {});
    for (const event of EVENTS) rapport("on", event, () => {});
    expect(complained).not.toHaveBeenCalled();
    rapport("explode");
    rapport("on", "typing", () => {});
    expect(complained.mock.calls.flat()).toEqual([
      expect.stringContaining("call_invalid no verb explode"),
      expect.stringContaining("call_invalid no event typing"),
    ]);
  });

  it("who listens late for ready hears it once; who listens no more hears nothing", () => {
    rapport("init", { site: "shop" });
    const late = vi.fn();
    rapport("on", "ready", late);
    rapport("off", "ready", late);
    rapport("init", { site: "help" });
    expect(late).toHaveBeenCalledTimes(1);
  });

  it("launchers on the same side stand above each other", () => {
    for (const [site, position] of [
      ["a", "right"],
      ["b", "left"],
      ["c", "right"],
    ])
      rapport("init", { site, position });
    expect(launchers().map((launcher) => hostOf(launcher).style.getPropertyValue("--row"))).toEqual(["0", "0", "1"]);
  });

  it("destroy takes the one that is named, or all", () => {
    for (const site of ["a", "b", "c"]) rapport("init", { site });
    rapport("destroy", "b");
    expect(launchers()).toHaveLength(2);
    rapport("destroy");
    expect(launchers()).toHaveLength(0);
    rapport("destroy");
    rapport("init", { site: "a" });
    expect(launchers()).toHaveLength(1);
  });

  it("puts the launcher back where a page throws everything away", async () => {
    rapport("init", { site: "shop" });
    hostOf().remove();
    await vi.waitFor(() => expect(launchers()).toHaveLength(1));
  });
});
