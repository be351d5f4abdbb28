// The visitor's choice to let a conversation be used for improvement: its own, never ticked beforehand, taken back at will.

import { useState } from "preact/hooks";
import type { ChatState } from "../conversation";
import { t } from "../i18n";
import type { ChatConfig } from "./config";
import type { ChatStore } from "./store";

const WORDS =
  "This conversation may be used to improve the AI, with names and contact details removed. This is voluntary, changes nothing about the chat, and you can take it back at any time.";

interface ConsentChoiceProps {
  readonly chat: ChatState;
  readonly config: ChatConfig;
  readonly store: ChatStore;
}

export function ConsentChoice({ chat, config, store }: ConsentChoiceProps) {
  const [isSaving, setSaving] = useState(false);
  const granted = chat.conversation?.consent ?? false;
  const change = async (input: HTMLInputElement) => {
    setSaving(true);
    const isDone = await store.setConsent(input.checked);
    setSaving(false);
    if (isDone) store.say(input.checked ? t("Saved: you agree.") : t("Saved: you do not agree."));
    else input.checked = granted; // the box shows what is stored, not what was tried
  };
  return (
    <label class="consent">
      <input
        type="checkbox"
        checked={granted}
        disabled={isSaving || chat.conversation === null}
        onChange={(event) => change(event.currentTarget)}
      />
      <span>{config.consentText === "" ? t(WORDS) : config.consentText}</span>
    </label>
  );
}
