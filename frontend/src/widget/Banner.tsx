// What is wrong with the line or with the last thing a visitor did, as sentences with a way on.

import { useEffect, useState } from "preact/hooks";
import type { ShownError } from "../conversation";
import { t } from "../i18n";
import { CLOSE, Icon } from "../shared/icons";
import type { Status, StopReason } from "../socket";
import { errorSentence, stopSentence } from "../texts";
import type { ChatStore } from "./store";
import { useSentences } from "./useSentences";

/** A line that comes back within this time was not worth a word. */
const PATIENCE_MS = 2_000;

/** true once the condition has held for `PATIENCE_MS`; false at once when it ends. */
function useLasting(condition: boolean): boolean {
  const [hasLasted, setLasted] = useState(false);
  useEffect(() => {
    setLasted(false);
    if (!condition) return;
    const timer = window.setTimeout(() => setLasted(true), PATIENCE_MS);
    return () => window.clearTimeout(timer);
  }, [condition]);
  return condition && hasLasted;
}

interface ConnectionBannerProps {
  readonly status: Status;
  readonly isErased: boolean;
  readonly store: ChatStore;
}

export function ConnectionBanner({ status, isErased, store }: ConnectionBannerProps) {
  const isDown = useLasting(status.kind !== "open" && !isErased);
  if (isErased || (!isDown && status.kind !== "stopped")) return null;
  const isStopped = status.kind === "stopped";
  return (
    <div class="banner">
      <span>
        {isStopped ? (
          <Stop reason={status.reason} />
        ) : (
          t("Reconnecting. What you write is kept on this device until it is sent.")
        )}
      </span>
      {isStopped && status.reason !== "replaced" && (
        <button type="button" class="link" onClick={() => window.location.reload()}>
          {t("Reload the page")}
        </button>
      )}
      {status.kind !== "connecting" && !(isStopped && status.reason !== "replaced") && (
        <button type="button" class="link" onClick={() => store.reconnect()}>
          {isStopped ? t("Use this tab") : t("Try now")}
        </button>
      )}
    </div>
  );
}

function Stop({ reason }: { readonly reason: StopReason }) {
  useSentences();
  return <>{stopSentence(reason)}</>;
}

export function ErrorNote({ error, store }: { readonly error: ShownError; readonly store: ChatStore }) {
  useSentences();
  return (
    <div class="error-note">
      <p>
        {errorSentence(error.code, error.retryAfterS)}
        {error.trace !== "" && <span class="quiet"> {t("Reference: {trace}", { trace: error.trace })}</span>}
      </p>
      <button type="button" class="icon-button" aria-label={t("Dismiss")} onClick={() => store.clearError()}>
        <Icon path={CLOSE} />
      </button>
    </div>
  );
}
