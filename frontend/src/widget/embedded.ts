// The panel inside a widget: does what the embedding page says, and tells it what its launcher and its scripts may know.

import type { ChatState } from "../conversation";
import type { ToPanel } from "../hostlink";
import type { ChatConfig } from "./config";
import { NewsCounter } from "./counts";
import { embeddingOrigin, HostLink } from "./link";
import { mendStorage } from "./memory";
import { prepare } from "./prepare";
import type { ChatStore } from "./store";
import { markOf, Visit } from "./visit";

type Setup = Extract<ToPanel, { type: "setup" }>;

/** What whoever embeds the widget should do now. */
const FOR_HOSTS: Readonly<Record<string, string>> = {
  identity_required: "This site wants its visitors named: call identify.",
  identity_invalid: "The signature does not fit the id: sign it on your server, with this site's secret.",
};

function isAnswering(chat: ChatState | undefined): boolean {
  return chat?.rows.some((row) => row.kind === "reply" && row.status === "running") ?? false;
}

class Embedded {
  readonly #link: HostLink;
  readonly #visit: Visit;
  readonly #mount: HTMLElement;
  readonly #config: ChatConfig;
  #news = new NewsCounter();
  #newest: Setup | null = null;
  #isOpen = false;
  #isReady = false;

  constructor(mount: HTMLElement, config: ChatConfig, link: HostLink) {
    this.#mount = mount;
    this.#config = config;
    this.#link = link;
    this.#visit = new Visit(mount, config, link);
  }

  start(): void {
    document.addEventListener("keydown", (event) => this.#closeOnEscape(event));
    this.#link.start((message) => this.#obey(message));
  }

  #obey(message: ToPanel): void {
    switch (message.type) {
      case "setup":
        this.#setUp(message);
        break;
      case "opened":
        this.#isOpen = true;
        this.#news.read();
        this.#focus();
        break;
      case "closed":
        this.#isOpen = false;
        break;
      case "reset":
        this.#newest = null;
        this.#visit.forget();
        this.#link.say({ type: "forgotten" });
    }
  }

  async #setUp(setup: Setup): Promise<void> {
    this.#isOpen = setup.isOpen;
    this.#newest = setup;
    const [mark] = await Promise.all([markOf(setup.identity), prepare(this.#config, setup)]);
    if (this.#newest !== setup) return; // another one came meanwhile, or the visitor is to be forgotten
    const store = this.#visit.begin(setup.identity, mark, setup.locale);
    if (store) this.#follow(store);
    if (this.#isReady) return;
    this.#isReady = true;
    this.#link.say({ type: "ready" });
  }

  #follow(store: ChatStore): void {
    const news = new NewsCounter();
    const told = new Set<string>();
    this.#news = news;
    store.subscribe(() => {
      const { message, unread } = news.next(store.chat, { isOpen: this.#isOpen });
      if (message) this.#link.say({ type: "message", ...message });
      if (unread !== null) this.#link.unread(unread);
      const code = store.chat.error?.code ?? "";
      const sentence = FOR_HOSTS[code];
      if (sentence === undefined || told.has(code)) return;
      told.add(code);
      this.#link.say({ type: "error", code, sentence });
    });
  }

  /** Where one writes; where fingers type, the keyboard stays down until they ask for it. */
  #focus(): void {
    const box = matchMedia("(pointer: coarse)").matches ? null : this.#mount.querySelector("textarea");
    this.#mount.tabIndex = -1;
    (box ?? this.#mount).focus({ preventScroll: true });
  }

  #closeOnEscape(event: KeyboardEvent): void {
    const { store } = this.#visit;
    const isElse = event.key !== "Escape" || event.defaultPrevented || event.isComposing;
    if (isElse || document.querySelector("dialog[open]") || isAnswering(store?.chat)) return;
    this.#link.close();
  }
}

/** Waits for the embedding page, where it is one that the server lists; else false: the page begins by itself. */
export function embed(mount: HTMLElement, config: ChatConfig): boolean {
  const origin = embeddingOrigin(window, config.origins);
  mendStorage(window);
  if (origin === null) return false;
  new Embedded(mount, config, new HostLink(window, origin)).start();
  return true;
}
