// The SOS sheet: reachable from every view, drawn from the page's own data, so it opens without a connection.

import { t } from "../i18n";
import { Dialog } from "../shared/Dialog";
import type { ChatConfig } from "./config";
import { Helplines } from "./Helplines";

export function HelpSheet({ config, onClose }: { readonly config: ChatConfig; onClose(): void }) {
  return (
    <Dialog title={t("Get help now")} onClose={onClose}>
      <p class="lead">
        {t(
          "If you or somebody near you is in danger, call your local emergency number now. The lines below are answered by people.",
        )}
      </p>
      <Helplines lines={config.helplines} siteCountry={config.country} />
      {config.helplines.length === 0 && <p>{t("Your local emergency number is the fastest help.")}</p>}
      <p class="quiet">
        {t(
          "This chat is an AI. It is not a medical device and not an emergency service, and nobody is promised to read it.",
        )}
        {config.helplinesChecked !== "" &&
          ` ${t("The lines were last checked on {day}.", { day: config.helplinesChecked })}`}
      </p>
    </Dialog>
  );
}
