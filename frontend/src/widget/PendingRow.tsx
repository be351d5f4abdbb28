// A message on its way: sending, not sent, or refused. Its text stays here and on the device until the server has it.

import type { PendingSend } from "../conversation";
import { t } from "../i18n";
import { memo } from "../shared/memo";
import { PlainText } from "../shared/Text";
import { errorSentence } from "../texts";
import type { ChatStore } from "./store";
import { useSentences } from "./useSentences";

const NEVER_WELCOME = ["empty_text", "text_too_long", "text_invalid", "too_large", "malformed", "closed"];

interface PendingRowProps {
  readonly pending: PendingSend;
  readonly store: ChatStore;
}

export const PendingRow = memo(({ pending, store }: PendingRowProps) => {
  const canRetry = pending.code === null || !NEVER_WELCOME.includes(pending.code);
  return (
    <article class="row visitor pending" aria-label={t("Your message, not sent yet")}>
      <PlainText text={pending.text} />
      {pending.state === "sending" ? (
        <p class="row-note">{t("Sending")}</p>
      ) : (
        <p class="row-note unsent">
          <span>{t("Not sent")}</span>
          {pending.state === "refused" && <Reason code={pending.code ?? ""} />}
          {canRetry && (
            <button type="button" class="link" onClick={() => store.retry(pending.clientId)}>
              {t("Retry")}
            </button>
          )}
          <button type="button" class="link" onClick={() => store.discard(pending.clientId)}>
            {t("Discard")}
          </button>
        </p>
      )}
    </article>
  );
});

function Reason({ code }: { readonly code: string }) {
  useSentences();
  return <span>{errorSentence(code, null)}</span>;
}
