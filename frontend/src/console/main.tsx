// Entry of the staff's pages: the list of conversations, or one transcript.

import "./staff.css";
import { render } from "preact";
import { SENTENCES } from "../sentences";
import { applyTheme, keptTheme } from "../shared/theme";
import { learn } from "../texts";
import { staffApi } from "./api";
import { readStaffConfig } from "./config";
import { Inbox } from "./Inbox";
import { Transcript } from "./Transcript";

function start(mount: HTMLElement): void {
  applyTheme(keptTheme());
  learn(SENTENCES);
  const config = readStaffConfig(mount, document);
  const api = staffApi(config.apiPath);
  mount.replaceChildren();
  const page =
    config.view === "transcript" ? <Transcript config={config} api={api} /> : <Inbox config={config} api={api} />;
  render(page, mount);
}

const mount = document.getElementById("rapport-staff");
if (mount) start(mount);
