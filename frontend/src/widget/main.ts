// Entry of the visitor's page: reads what the server says and begins, in a widget when the embedding page has answered.

import "./chat.css";
import { localeOf, visitorApi } from "./api";
import { begin } from "./begin";
import { readConfig } from "./config";
import { embed } from "./embedded";
import { prepare } from "./prepare";
import { keepFor } from "./storage";

async function start(mount: HTMLElement): Promise<void> {
  const config = readConfig(mount, document);
  if (window.parent !== window && embed(mount, config)) return;
  await prepare(config);
  const { token } = keepFor(config.site);
  begin(mount, config, visitorApi({ ...config, locale: localeOf(navigator.language), token }));
}

const mount = document.getElementById("rapport-chat");
if (mount) start(mount);
