// What takes the composer's place when a chat has ended or was deleted: the way to a new one, and a rating.

import { t } from "../i18n";
import { ChatRating } from "./ChatRating";
import type { ChatStore } from "./store";

export interface EndPanelProps {
  readonly store: ChatStore;
  readonly isErased: boolean;
  onStartAnew(): void;
}

export function EndPanel({ store, isErased, onStartAnew }: EndPanelProps) {
  return (
    <section class="end" aria-label={isErased ? t("Your data is deleted") : t("The chat has ended")}>
      <div class="end-head">
        <p>{isErased ? t("Everything you wrote here has been deleted.") : t("This chat has ended.")}</p>
        <button type="button" class="button" onClick={onStartAnew}>
          {t("Start a new chat")}
        </button>
      </div>
      {!isErased && <ChatRating store={store} />}
    </section>
  );
}
