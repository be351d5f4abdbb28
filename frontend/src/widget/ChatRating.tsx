// How well the chat went, in the visitor's eyes; asked once it has ended, never needed.

import { useId, useState } from "preact/hooks";
import { t } from "../i18n";
import { MAX_COMMENT_CHARS } from "../protocol";
import { rateChat } from "./matters";
import type { ChatStore } from "./store";

const STARS = [
  [1, "Not at all"],
  [2, "A little"],
  [3, "Somewhat"],
  [4, "Well"],
  [5, "Very well"],
] as const;

interface ChatRatingProps {
  readonly store: ChatStore;
}

export function ChatRating({ store }: ChatRatingProps) {
  const [stars, setStars] = useState(0);
  const [comment, setComment] = useState("");
  const [isSaved, setSaved] = useState(false);
  const ids = { group: useId(), comment: useId() };
  const send = async (event: Event) => {
    event.preventDefault();
    const isDone = await rateChat(store, { stars, comment: comment.trim() });
    setSaved(isDone);
    if (isDone) store.say(t("Thank you. Your rating is saved."));
  };
  if (isSaved) return <p class="quiet">{t("Thank you. Your rating is saved.")}</p>;
  return (
    <form class="rating" onSubmit={send}>
      <fieldset class="stars">
        <legend>{t("How well did this chat support you?")}</legend>
        {STARS.map(([value, label]) => (
          <label class="star" key={value} title={t(label)}>
            <input type="radio" name={ids.group} checked={stars === value} onChange={() => setStars(value)} />
            <span>
              {value}
              <span class="unseen">, {t(label)}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {stars > 0 && (
        <>
          <label for={ids.comment}>{t("Anything you want to add (optional)")}</label>
          <textarea
            id={ids.comment}
            rows={2}
            maxLength={MAX_COMMENT_CHARS}
            value={comment}
            onInput={(event) => setComment(event.currentTarget.value)}
          />
          <button type="submit" class="button strong">
            {t("Send rating")}
          </button>
        </>
      )}
    </form>
  );
}
