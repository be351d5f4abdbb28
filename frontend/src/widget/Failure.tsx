// Why there is no whole answer, below what there is of it, and the way to another try.

import { t } from "../i18n";
import { failureSentence } from "../texts";
import type { ChatStore } from "./store";
import { useSentences } from "./useSentences";

interface FailureProps {
  readonly id: string;
  readonly code: string | null;
  readonly canRetry: boolean;
  readonly store: ChatStore;
}

export function Failure({ id, code, canRetry, store }: FailureProps) {
  useSentences();
  return (
    <p class="row-note failed">
      <span>{failureSentence(code)}</span>
      {canRetry && (
        <button type="button" class="link" onClick={() => store.regenerate(id)}>
          {t("Try again")}
        </button>
      )}
    </p>
  );
}
