// `widget.js`: runs on other people's pages as a classic script. Makes `window.rapport`, plays what was called before it
// came, and puts a widget for the site that its own tag names. Loaded twice, the second run only hands its options over.

import type { Identity } from "../hostlink";
import { makeWidget, type Widget } from "./launcher";
import { type ErrorCode, EVENTS, type EventName, OPTIONS, type OptionName, type Options, type Verb } from "./names";

export type Call = readonly [verb: string, what?: unknown, more?: unknown];

export interface Rapport {
  (...call: Call): void;
  /** Calls from before this script came. */
  q?: Iterable<unknown>[];
  isLoaded?: true;
}

declare global {
  interface Window {
    rapport?: Rapport;
  }
}

const script = document.currentScript as HTMLScriptElement | null;
const ourBase = new URL(".", script?.src ?? location.href);
const widgets = new Map<string, Widget>();
/** Events are the browser's own kind: a listener that fails stops nobody else. */
const bus = new EventTarget();
/** Calls for widgets that are not there yet. */
const waiting: Call[] = [];

const made = (event: EventName, detail: object) => new CustomEvent(event, { detail });
const tell = (event: EventName, detail: object) => bus.dispatchEvent(made(event, detail));

function fail(site: unknown, code: ErrorCode, sentence: string): void {
  // biome-ignore lint/suspicious/noConsole: whoever embeds the widget looks here first
  console.error(`Rapport ${site}: ${code} ${sentence}`);
  tell("error", { site, code });
}

function readOptions(given: object): Options {
  const read: { [name in OptionName]?: string } = {};
  for (const [name, value] of Object.entries(given)) {
    if (OPTIONS[name as OptionName]?.test(value)) read[name as OptionName] = `${value}`;
    else fail(read.site, "option_invalid", `${name}=${value}`);
  }
  return read;
}

function init(given: object, base: unknown): void {
  const options = readOptions(given);
  const { site, position } = options;
  if (!site) return;
  const known = widgets.get(site);
  if (known) {
    known.configure(options);
    return;
  }
  const widget = makeWidget(
    {
      site,
      options,
      base: base instanceof URL ? base : ourBase,
      tell: (event, facts) => tell(event, { site, ...facts }),
      fail: (code, sentence) => fail(site, code, sentence),
      closeOthers: () => rapport("close"),
    },
    [...widgets.values()].filter((other) => other.position === position).length,
  );
  widgets.set(site, widget);
  tell("ready", { site });
  for (const call of waiting.splice(0)) rapport(...call);
}

const onWidgets: { readonly [verb in Verb]?: (widget: Widget, what: unknown) => void } = {
  open: (widget) => widget.open(),
  close: (widget) => widget.close(),
  toggle: (widget) => widget.toggle(),
  reset: (widget) => widget.reset(),
  identify: (widget, what) => widget.identify(what as Identity),
  destroy(widget) {
    widget.destroy();
    widgets.delete(widget.site);
  },
};

const FOR_ALL = ["close", "reset", "destroy"];

/** The widgets that a call is for: the one of the site that it names; else the first, and for an ending all. */
function meant(verb: string, what: unknown): readonly Widget[] {
  const site = Object(what).site ?? what;
  const all = [...widgets.values()];
  if (typeof site === "string") return all.filter((widget) => widget.site === site);
  return FOR_ALL.includes(verb) ? all : all.slice(0, 1);
}

function listen(isOn: boolean, event: EventName, listener: EventListener): void {
  if (!EVENTS.includes(event)) fail("", "call_invalid", `no event ${event}`);
  else if (!isOn) bus.removeEventListener(event, listener);
  else {
    bus.addEventListener(event, listener);
    // Whoever listens late has not missed it.
    if (event === "ready") for (const { site } of widgets.values()) listener(made(event, { site }));
  }
}

const rapport: Rapport = (...call) => {
  const [verb, what, more] = call;
  const run = onWidgets[verb as Verb];
  if (verb === "init") init(Object(what), more);
  else if (verb === "on" || verb === "off") listen(verb === "on", what as EventName, more as EventListener);
  else if (run) {
    const those = meant(verb, what);
    for (const widget of those) run(widget, what);
    if (!those[0] && verb !== "destroy") waiting.push(call);
  } else fail("", "call_invalid", `no verb ${verb}`);
};
rapport.isLoaded = true;

function start(): void {
  const stub = window.rapport;
  const door = stub?.isLoaded ? stub : rapport;
  window.rapport = door;
  if (script?.dataset.site) door("init", script.dataset, ourBase);
  if (door !== stub) for (const call of stub?.q ?? []) door(...(call as Call));
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
