// The top of the page: whom one talks to, said honestly, and the way to people who can help.

import type { RefObject } from "preact";
import type { ChatState } from "../conversation";
import { t } from "../i18n";
import { CLOSE, Icon, MORE } from "../shared/icons";
import type { ChatConfig } from "./config";
import type { Host } from "./host";

interface HeaderProps {
  readonly host: Host;
  readonly isSettingsOpen: boolean;
  readonly settingsButton: RefObject<HTMLButtonElement | null>;
  readonly config: ChatConfig;
  readonly chat: ChatState;
  onHelp(): void;
  onSettings(): void;
}

export function whoAnswers(chat: ChatState, isDemoModel: boolean): string {
  if (chat.conversation?.control === "human") {
    const name = chat.assignee ?? t("Somebody");
    return t("You were talking to an AI. {name} from the team answers now.", { name });
  }
  return isDemoModel ? t("You are talking to an AI (a small demonstration model)") : t("You are talking to an AI");
}

export function Header({ config, chat, host, isSettingsOpen, settingsButton, onHelp, onSettings }: HeaderProps) {
  return (
    <header class="bar">
      <div class="bar-who">
        <h1>
          <bdi>{config.siteName}</bdi>
        </h1>
        <p class="bar-ai">{whoAnswers(chat, config.isDemoModel)}</p>
      </div>
      <button type="button" class="button help-button" onClick={onHelp}>
        <span class="help-sos">SOS</span>
        <span class="help-words">{t("Get help now")}</span>
      </button>
      <button
        type="button"
        class="icon-button"
        aria-label={t("Chat settings and your data")}
        aria-expanded={isSettingsOpen}
        ref={settingsButton}
        onClick={onSettings}
      >
        <Icon path={MORE} />
      </button>
      {host.isEmbedded && (
        <button type="button" class="icon-button" aria-label={t("Close the chat")} onClick={() => host.close()}>
          <Icon path={CLOSE} />
        </button>
      )}
    </header>
  );
}
