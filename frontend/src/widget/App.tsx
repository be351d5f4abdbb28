// The chat page: what is where. Every part that a visitor in distress may need is reachable on every view.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { hasEnded } from "../rows";
import { isOpen, itemsOf, runningReply } from "../timeline";
import { Announcements } from "./Announcements";
import { ConnectionBanner, ErrorNote } from "./Banner";
import { Composer } from "./Composer";
import type { ChatConfig } from "./config";
import { Header } from "./Header";
import { HelpSheet } from "./HelpSheet";
import { type Host, NO_HOST } from "./host";
import { Log } from "./Log";
import { ending, fetchTheRest, settings } from "./parts";
import { SafetyCard } from "./SafetyCard";
import type { Keep } from "./storage";
import type { ChatStore } from "./store";
import { useSnapshot } from "./useSnapshot";

interface AppProps {
  readonly store: ChatStore;
  readonly config: ChatConfig;
  readonly keep: Keep;
  /** The page that embeds the panel; left out on a page of its own. */
  readonly host?: Host | undefined;
}

export function App({ store, config, keep, host = NO_HOST }: AppProps) {
  const { chat, announcements } = useSnapshot(store);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isErased, setErased] = useState(false);
  const view = useSettingsView(store);
  const running = runningReply(chat);
  useStopOnEscape(store, running !== undefined && !isHelpOpen && !view.isOpen);
  const hasAnswer = chat.rows.some((row) => row.kind === "reply" && hasEnded(row));
  useEffect(() => {
    if (hasAnswer) fetchTheRest();
  }, [hasAnswer]);
  const startAnew = () => {
    setErased(false);
    store.startAnew();
  };
  const conversation = chat.conversation?.id ?? keep.conversation();
  return (
    <div class={view.isOpen ? "chat viewing" : "chat"}>
      <Header
        config={config}
        chat={chat}
        host={host}
        isSettingsOpen={view.isOpen}
        settingsButton={view.button}
        onHelp={() => setHelpOpen(true)}
        onSettings={view.toggle}
      />
      <ConnectionBanner status={chat.connection} isErased={isErased} store={store} />
      {view.isOpen && (
        <settings.Part
          chat={chat}
          config={config}
          store={store}
          onErased={() => setErased(true)}
          onClose={view.close}
        />
      )}
      {chat.card && <SafetyCard card={chat.card} config={config} store={store} />}
      <Log chat={chat} items={itemsOf(chat)} config={config} store={store} />
      <div class="dock">
        {chat.error && <ErrorNote error={chat.error} store={store} />}
        {!isErased && isOpen(chat) ? (
          <Composer keep={keep} store={store} running={running !== undefined} conversation={conversation} />
        ) : (
          <ending.Part store={store} isErased={isErased} onStartAnew={startAnew} />
        )}
        <p class="fine">{t("An AI, not a medical device and not an emergency service. In danger? Press “SOS”.")}</p>
      </div>
      <Announcements announcements={announcements} />
      {isHelpOpen && <HelpSheet config={config} onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

/** The settings take the conversation's place; their file comes first, so that the view opens whole or not at all. */
function useSettingsView(store: ChatStore) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const open = () =>
    settings.load().then(
      () => setOpen(true),
      () => store.fail("offline"),
    );
  return { isOpen, button, close, toggle: isOpen ? close : open };
}

function useStopOnEscape(store: ChatStore, isActive: boolean): void {
  useEffect(() => {
    if (!isActive) return;
    const stopOnEscape = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing) store.stop();
    };
    document.addEventListener("keydown", stopOnEscape);
    return () => document.removeEventListener("keydown", stopOnEscape);
  }, [store, isActive]);
}
