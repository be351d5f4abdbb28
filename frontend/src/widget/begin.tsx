// Draws one visitor's chat: on a page of its own at once, in a widget once the embedding page has said who it is.

import { render } from "preact";
import { browserPlatform, socketUrl } from "../platform";
import { App } from "./App";
import type { VisitorApi } from "./api";
import type { ChatConfig } from "./config";
import type { Host } from "./host";
import { keepFor } from "./storage";
import { ChatStore } from "./store";

/** `crypto.randomUUID` exists on secure pages only; a plain `http` page in an intranet must work too. */
const newId = () => crypto.getRandomValues(new BigUint64Array(2)).join();

export function begin(mount: HTMLElement, config: ChatConfig, api: VisitorApi, host?: Host): ChatStore {
  const keep = keepFor(config.site);
  const store = new ChatStore({
    socketUrl: socketUrl(config.socketPath),
    platform: browserPlatform,
    api,
    keep,
    now: Date.now,
    newId,
  });
  // The template says who answers for pages without scripts; from here on the page's own head says it, always in sight.
  document.getElementById("rapport-notice")?.remove();
  render(<App store={store} config={config} keep={keep} host={host} />, mount);
  store.start();
  return store;
}
