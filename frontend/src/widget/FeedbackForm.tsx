// Why an answer was good or bad: reasons and a comment, both optional, changeable as long as the answer is there.

import { useId, useState } from "preact/hooks";
import { t } from "../i18n";
import { MAX_COMMENT_CHARS, type Thumb } from "../protocol";
import type { Row } from "../rows";
import type { ChatStore } from "./store";

type Reason = readonly [code: string, label: string];

const GOOD: readonly Reason[] = [
  ["felt_understood", "I felt understood"],
  ["warm", "Warm"],
  ["clear", "Clear"],
  ["useful_step", "Gave me a next step"],
];
const BAD: readonly Reason[] = [
  ["missed_feeling", "Missed how I feel"],
  ["misread_situation", "Did not get my situation"],
  ["pushed_advice", "Pushed advice"],
  ["repetitive", "Repetitive or empty"],
  ["wrong", "Wrong or made up"],
  ["harmful", "Harmful"],
];

interface FeedbackFormProps {
  readonly row: Row;
  readonly store: ChatStore;
  onClose(): void;
}

export function FeedbackForm({ row, store, onClose }: FeedbackFormProps) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [comment, setComment] = useState("");
  const field = useId();
  const toggle = (code: string) =>
    setChosen(chosen.includes(code) ? chosen.filter((other) => other !== code) : [...chosen, code]);
  const send = (event: Event) => {
    event.preventDefault();
    const value: Thumb = row.feedback > 0 ? 1 : -1;
    if (!store.rateReply(row.id, { value, reasons: chosen, comment: comment.trim() })) return;
    store.say(t("Thank you. Your feedback is saved."));
    onClose();
  };
  return (
    <form class="feedback" onSubmit={send}>
      <fieldset class="chips">
        <legend>{row.feedback > 0 ? t("What was good about it?") : t("What was wrong with it?")}</legend>
        {(row.feedback > 0 ? GOOD : BAD).map(([code, label]) => (
          <label class="chip" key={code}>
            <input type="checkbox" checked={chosen.includes(code)} onChange={() => toggle(code)} />
            <span>{t(label)}</span>
          </label>
        ))}
      </fieldset>
      <label for={field}>{t("In your own words (optional)")}</label>
      <textarea
        id={field}
        rows={2}
        maxLength={MAX_COMMENT_CHARS}
        value={comment}
        onInput={(event) => setComment(event.currentTarget.value)}
      />
      <div class="choices">
        <button type="submit" class="button strong">
          {t("Send feedback")}
        </button>
        <button type="button" class="button" onClick={onClose}>
          {t("Not now")}
        </button>
      </div>
    </form>
  );
}
