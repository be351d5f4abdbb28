// Where a visitor writes. Enter sends, Shift+Enter breaks the line, Enter inside an input method only chooses a word.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { inDigits, t } from "../i18n";
import { codePoints, MAX_TEXT_CHARS, problemOf } from "../protocol";
import { Icon, SEND, STOP } from "../shared/icons";
import type { Keep } from "./storage";
import type { ChatStore } from "./store";

/** The counter appears when this many characters are left. */
const COUNT_FROM = 1_000;

interface ComposerProps {
  readonly keep: Keep;
  readonly store: ChatStore;
  readonly running: boolean;
  /** Whose draft this is; "" before the server has said. */
  readonly conversation: string;
}

/** Whether this key press sends. Safari reports the Enter that ends a composition as key code 229. */
export function sendsOn(event: Pick<KeyboardEvent, "key" | "shiftKey" | "isComposing" | "keyCode">): boolean {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;
}

export function Composer({ keep, store, running, conversation }: ComposerProps) {
  const [text, change] = useDraft(keep, conversation);
  const box = useRef<HTMLTextAreaElement>(null);
  const left = MAX_TEXT_CHARS - codePoints(text.trim());
  useAutosize(box, text);
  const send = () => {
    if (problemOf(text) === "empty_text" || !store.send(text)) return;
    change("");
    box.current?.focus();
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="composer-box">
        <label for="field" class={text === "" ? "composer-label" : "unseen"}>
          {t("Write a message")}
        </label>
        <textarea
          id="field"
          ref={box}
          rows={1}
          dir="auto"
          enterkeyhint="send"
          value={text}
          aria-describedby={left < COUNT_FROM ? "count" : undefined}
          onInput={(event) => {
            change(event.currentTarget.value);
            store.typing();
          }}
          onKeyDown={(event) => {
            if (!sendsOn(event)) return;
            event.preventDefault();
            send();
          }}
        />
        <StopPlace running={running} store={store} onGone={() => box.current?.focus()} />
        <button
          type="submit"
          class="icon-button send-button"
          aria-label={t("Send")}
          disabled={left < 0 || text.trim() === ""}
        >
          <Icon path={SEND} />
        </button>
      </div>
      {left < COUNT_FROM && (
        <p class={left < 0 ? "count over" : "count"} id="count">
          {left >= 0
            ? t("{count} characters left", { count: inDigits(left) })
            : t("{count} characters too many", { count: inDigits(-left) })}
        </p>
      )}
    </form>
  );
}

/** The text in the box, kept for its conversation on this device and in step with other tabs. */
function useDraft(keep: Keep, conversation: string): [string, (next: string) => void] {
  const [text, setText] = useState(() => keep.draft(conversation));
  const of = useRef(conversation);
  useEffect(() => {
    const before = of.current;
    of.current = conversation;
    if (before === conversation) return;
    if (before === "") {
      // Written before the conversation had a name: it is this one's.
      keep.setDraft(conversation, keep.draft("") || keep.draft(conversation));
      keep.setDraft("", "");
    }
    setText(keep.draft(conversation));
  }, [keep, conversation]);
  useEffect(() => keep.watch({ draft: (whose, written) => whose === of.current && setText(written) }), [keep]);
  const change = (next: string) => {
    setText(next);
    keep.setDraft(of.current, next);
  };
  return [text, change];
}

interface StopPlaceProps {
  readonly running: boolean;
  readonly store: ChatStore;
  /** Called where the button goes away under the keyboard's focus, which must not be lost. */
  onGone(): void;
}

/** Stop has a place of its own that is kept free for it: nothing moves when an answer begins, streams or ends. */
function StopPlace({ running, store, onGone }: StopPlaceProps) {
  const button = useRef<HTMLButtonElement>(null);
  const losesFocus = !running && (button.current?.matches(":focus-visible") ?? false);
  useLayoutEffect(() => {
    if (losesFocus) onGone();
  });
  return (
    <span class="stop-place">
      {running && (
        <button type="button" class="button stop-button" ref={button} onClick={() => store.stop()}>
          <Icon path={STOP} />
          <span class="stop-word">{t("Stop")}</span>
        </button>
      )}
    </span>
  );
}

function useAutosize(box: { readonly current: HTMLTextAreaElement | null }, text: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    node.style.height = "auto";
    node.style.height = `${node.scrollHeight}px`;
  }, [box, text]);
}
