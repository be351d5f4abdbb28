// The button on the host page and what stands behind it. Until somebody opens the chat it keeps nothing, asks nothing and
// connects to nothing; then it brings `widget-panel.js`. Closures, not a class: every page view of every host pays for
// this file, and their names are shortened in the build.

import type { Identity } from "../hostlink";
import { addStyle, BUBBLE, CROSS, draw as drawing, put, set } from "./dom";
import look from "./launcher.css?inline";
import type { Options } from "./names";
import type { MakePanel, Panel, Seat } from "./seat";
import { failedText } from "./texts";

export interface Widget {
  readonly site: string;
  readonly position: string | undefined;
  configure(options: Options): void;
  open(): void;
  close(): void;
  toggle(): void;
  identify(identity: Identity): void;
  reset(): void;
  destroy(): void;
}

/** `row`: how many launchers stand below this one. */
export function makeWidget(
  given: Pick<Seat, "site" | "base" | "options" | "tell" | "fail" | "closeOthers">,
  row: number,
): Widget {
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const section = put("section", root, {});
  const launcher = put("button", section, { class: "launcher" });
  const icon = drawing(launcher, BUBBLE);
  const badge = put("b", launcher, {});
  const note = put("p", section, { class: "note", role: "alert" });
  const seat: Seat = {
    ...given,
    host,
    root,
    section,
    launcher,
    identity: null,
    isOpen: false,
    unread: 0,
    draw,
    giveUp(sentence) {
      given.fail("unreachable", sentence);
      note.textContent = failedText(seat.options.locale ?? document.documentElement.lang);
    },
  };
  let panel: Panel | undefined;
  let coming: Promise<void> | undefined;
  let tries = 0;
  let isGone = false;

  function draw(): void {
    const { options, isOpen, unread } = seat;
    const { position = "right", accent = "#17696a", label = "Chat", zIndex = 2147483647 } = options;
    section.classList.toggle("left", position === "left");
    section.classList.toggle("open", isOpen);
    set(section, { "aria-label": label });
    set(launcher, { "aria-expanded": isOpen, "aria-label": unread ? `${label} (${unread})` : label });
    set(icon, { d: isOpen ? CROSS : BUBBLE });
    launcher.hidden = options.launcher === "hidden";
    badge.hidden = !unread;
    badge.textContent = `${unread}`;
    const vary = { row, z: zIndex, accent, "on-accent": isLight(accent) ? "#10201f" : "#fff" };
    for (const [name, value] of Object.entries(vary)) host.style.setProperty(`--${name}`, `${value}`);
  }

  /** Runs on the panel where it is there or on its way. */
  function onPanel(run: (panel: Panel) => void): void {
    if (panel) run(panel);
    else coming?.then(() => panel && run(panel));
  }

  /** Brings the panel first where nobody has. */
  function withPanel(run: (panel: Panel) => void): void {
    note.textContent = "";
    // Some browsers remember for ever that an address failed.
    coming ??= import(/* @vite-ignore */ `${given.base}widget-panel.js?${tries++}`).then(
      ({ makePanel }: { makePanel: MakePanel }) => {
        if (!isGone) panel = makePanel(seat);
      },
      () => {
        coming = undefined;
        seat.giveUp(`no answer from ${given.base}`);
      },
    );
    onPanel(run);
  }

  // A page that rebuilds its whole document loses the widget; put back a moment later, so that no page is kept busy.
  function attach(): void {
    if (!isGone && !host.isConnected) document.documentElement.append(host);
  }

  const watch = new MutationObserver(() => setTimeout(attach));
  watch.observe(document.documentElement, { childList: true });
  addStyle(root, look);
  draw();
  attach();

  const widget: Widget = {
    site: given.site,
    position: given.options.position,
    configure(options) {
      seat.options = { ...seat.options, ...options };
      draw();
      onPanel((panel) => panel.follow());
    },
    open: () => withPanel((panel) => panel.open()),
    close: () => onPanel((panel) => panel.close()),
    toggle: () => (seat.isOpen ? widget.close() : widget.open()),
    identify(identity) {
      seat.identity = identity;
      onPanel((panel) => panel.follow());
    },
    reset() {
      seat.identity = null;
      withPanel((panel) => panel.reset());
    },
    destroy() {
      isGone = true;
      watch.disconnect();
      onPanel((panel) => panel.destroy());
      host.remove();
    },
  };
  launcher.onclick = widget.toggle;
  return widget;
}

/** Whether dark signs are read better than light ones on this colour. */
function isLight(colour: string): boolean {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  return red * 0.299 + green * 0.587 + blue * 0.114 > 150;
}
