// The visitor's own matters: appearance, reading aloud, consent, a copy of the conversation, its end, and deleting
// everything. A view below the page's head and not a modal sheet, so that SOS stays where it is and in reach.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ChatState } from "../conversation";
import { t } from "../i18n";
import { CLOSE, Icon } from "../shared/icons";
import { ThemeChoice } from "../shared/ThemeChoice";
import { isOpen } from "../timeline";
import { ConsentChoice } from "./ConsentChoice";
import type { ChatConfig } from "./config";
import { webLink } from "./helplines";
import { deleteEverything, download, endChat } from "./matters";
import type { ChatStore } from "./store";

export interface SettingsProps {
  readonly chat: ChatState;
  readonly config: ChatConfig;
  readonly store: ChatStore;
  onErased(): void;
  onClose(): void;
}

function saveFile(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function Settings({ chat, config, store, onErased, onClose }: SettingsProps) {
  const conversation = chat.conversation;
  const privacy = webLink(config.privacyUrl);
  const save = async () => {
    const file = await download(store);
    if (file) saveFile(file, `conversation-${conversation?.id ?? ""}.json`);
    else onClose(); // the reason stands above the composer
  };
  const end = async () => {
    await endChat(store);
    onClose();
  };
  return (
    <View title={t("Chat settings and your data")} onClose={onClose}>
      <ThemeChoice />
      <ReadingChoice store={store} />
      <h3>{t("Your data")}</h3>
      <ConsentChoice chat={chat} config={config} store={store} />
      <div class="choices">
        <button type="button" class="button" disabled={!conversation} onClick={save}>
          {t("Download my conversation")}
        </button>
        {isOpen(chat) && (
          <button type="button" class="button" disabled={!conversation} onClick={end}>
            {t("End this chat")}
          </button>
        )}
      </div>
      <Erase store={store} onErased={onErased} onClose={onClose} />
      {privacy && (
        <p>
          <a href={privacy} target="_blank" rel="noopener noreferrer">
            {t("How your data is handled")}
          </a>
        </p>
      )}
    </View>
  );
}

interface ViewProps {
  readonly title: string;
  readonly children: ComponentChildren;
  onClose(): void;
}

/** Takes the conversation's place. Focus comes in, Escape leaves; `App` gives the focus back. */
function View({ title, children, onClose }: ViewProps) {
  const heading = useId();
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    close.current?.focus();
  }, []);
  return (
    <div
      class="view"
      role="dialog"
      aria-labelledby={heading}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        onClose();
      }}
    >
      <div class="view-inner">
        <div class="sheet-head">
          <h2 id={heading}>{title}</h2>
          <button type="button" class="icon-button" aria-label={t("Close")} ref={close} onClick={onClose}>
            <Icon path={CLOSE} />
          </button>
        </div>
        {children}
      </div>
    </div>
  );
}

/** For those who listen: whole answers, or each sentence as it comes. */
function ReadingChoice({ store }: { readonly store: ChatStore }) {
  return (
    <label class="consent">
      <input
        type="checkbox"
        checked={store.readsSentences}
        onChange={(event) => store.readSentences(event.currentTarget.checked)}
      />
      <span>{t("With a screen reader: read each sentence of an answer as soon as it is there.")}</span>
    </label>
  );
}

function Erase({ store, onErased, onClose }: Pick<SettingsProps, "store" | "onErased" | "onClose">) {
  const [isSure, setSure] = useState(false);
  const erase = async () => {
    if (await deleteEverything(store)) onErased();
    onClose();
  };
  if (!isSure) {
    return (
      <button type="button" class="button danger" onClick={() => setSure(true)}>
        {t("Delete my data")}
      </button>
    );
  }
  return (
    <div class="confirm" role="alertdialog" aria-label={t("Delete my data")}>
      <p>{t("This deletes everything you wrote here, the answers and your ratings. It cannot be undone.")}</p>
      <div class="choices">
        <button type="button" class="button danger strong" onClick={erase}>
          {t("Delete everything")}
        </button>
        <button type="button" class="button" onClick={() => setSure(false)}>
          {t("Keep it")}
        </button>
      </div>
    </div>
  );
}
