// What the staff templates tell the page: mount attributes and the JSON in `#rapport-config`. Read once by `main.tsx`.

import { asObject, flagOr, type JsonObject } from "../json";

export interface StaffConfig {
  readonly view: "inbox" | "transcript";
  readonly conversation: string;
  readonly apiPath: string;
  readonly socketPath: string;
  /** Where a transcript is: this, the conversation's id, a slash. */
  readonly transcriptPath: string;
  readonly mayReveal: boolean;
}

export function readStaffConfig(mount: HTMLElement, page: ParentNode): StaffConfig {
  const source = page.querySelector("#rapport-config")?.textContent ?? "";
  const json: JsonObject = source.trim() === "" ? {} : asObject(JSON.parse(source), "rapport-config");
  const user = json.user ? asObject(json.user, "user") : {};
  const { dataset } = mount;
  return {
    view: dataset.view === "transcript" ? "transcript" : "inbox",
    conversation: dataset.conversation ?? "",
    apiPath: dataset.api ?? "/api/staff/",
    socketPath: dataset.socket ?? "/ws/staff/",
    transcriptPath: dataset.transcripts ?? "/staff/conversations/",
    mayReveal: flagOr(user, "may_reveal", false),
  };
}
