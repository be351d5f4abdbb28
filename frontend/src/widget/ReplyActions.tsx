// What a visitor can do with an answer: leaf through its siblings, copy, ask anew, rate.

import { useState } from "preact/hooks";
import { t } from "../i18n";
import type { Thumb } from "../protocol";
import type { Row, Rows } from "../rows";
import { Icon } from "../shared/icons";
import { AGAIN, COPY, DONE, DOWN, LEFT, RIGHT, UP } from "./answericons";
import { FeedbackForm } from "./FeedbackForm";
import type { ChatStore } from "./store";

export interface ReplyActionsProps {
  readonly row: Row;
  readonly siblings: Rows;
  readonly isLast: boolean;
  readonly store: ChatStore;
}

export function ReplyActions({ row, siblings, isLast, store }: ReplyActionsProps) {
  const [isAsking, setAsking] = useState(false);
  const rate = (value: Thumb) => {
    const next = row.feedback === value ? 0 : value;
    if (store.rateReply(row.id, { value: next, reasons: [], comment: "" })) setAsking(next !== 0);
  };
  return (
    <>
      <div class="actions">
        {siblings.length > 1 && <SiblingSwitch row={row} siblings={siblings} store={store} />}
        {row.text !== "" && (
          <>
            <Thumbs row={row} onRate={rate} />
            <CopyButton text={row.text} store={store} />
          </>
        )}
        {isLast && <Action icon={AGAIN} label={t("Answer again")} onClick={() => store.regenerate(row.id)} />}
      </div>
      {isAsking && row.feedback !== 0 && (
        <FeedbackForm row={row} store={store} key={row.feedback} onClose={() => setAsking(false)} />
      )}
    </>
  );
}

interface ActionProps {
  readonly icon: string;
  readonly label: string;
  readonly isPressed?: boolean;
  readonly isDisabled?: boolean;
  onClick(): void;
}

function Action({ icon, label, isPressed, isDisabled = false, onClick }: ActionProps) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={label}
      title={label}
      {...(isPressed === undefined ? {} : { "aria-pressed": isPressed })}
      disabled={isDisabled}
      onClick={onClick}
    >
      <Icon path={icon} />
    </button>
  );
}

function Thumbs({ row, onRate }: { readonly row: Row; onRate(value: Thumb): void }) {
  return (
    <>
      <Action icon={UP} label={t("Good answer")} isPressed={row.feedback === 1} onClick={() => onRate(1)} />
      <Action icon={DOWN} label={t("Bad answer")} isPressed={row.feedback === -1} onClick={() => onRate(-1)} />
    </>
  );
}

function SiblingSwitch({ row, siblings, store }: Omit<ReplyActionsProps, "isLast">) {
  const at = siblings.findIndex((sibling) => sibling.id === row.id);
  const before = siblings[at - 1];
  const after = siblings[at + 1];
  return (
    <fieldset class="siblings">
      <legend class="unseen">{t("Answers to the same message")}</legend>
      <Action
        icon={LEFT}
        label={t("Previous answer")}
        isDisabled={!before}
        onClick={() => before && store.select(before.id)}
      />
      <span class="siblings-place">
        {at + 1}/{siblings.length}
      </span>
      <Action
        icon={RIGHT}
        label={t("Next answer")}
        isDisabled={!after}
        onClick={() => after && store.select(after.id)}
      />
    </fieldset>
  );
}

function CopyButton({ text, store }: { readonly text: string; readonly store: ChatStore }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      store.say(t("The browser did not allow copying.")); // on an `http` page or without permission
      return;
    }
    setCopied(true);
    store.say(t("Copied."));
    window.setTimeout(() => setCopied(false), 2_000);
  };
  return <Action icon={isCopied ? DONE : COPY} label={t("Copy answer")} onClick={copy} />;
}
