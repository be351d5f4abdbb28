// What stands before the first message: whom one talks to, what it is not, and the separate choice about improvement.

import type { ChatState } from "../conversation";
import { t } from "../i18n";
import { ConsentChoice } from "./ConsentChoice";
import type { ChatConfig } from "./config";
import type { ChatStore } from "./store";

interface IntroProps {
  readonly chat: ChatState;
  readonly config: ChatConfig;
  readonly store: ChatStore;
  readonly hasBegun: boolean;
}

export function Intro({ chat, config, store, hasBegun }: IntroProps) {
  return (
    <section class="intro" aria-label={t("About this chat")}>
      <p class="intro-greeting">{config.greeting === "" ? t("Hello. What is on your mind?") : config.greeting}</p>
      <p>{modelText(config)}</p>
      {chat.conversation && !hasBegun && <ConsentChoice chat={chat} config={config} store={store} />}
      {!hasBegun && <Suggestions config={config} store={store} />}
    </section>
  );
}

function modelText(config: ChatConfig): string {
  const name = config.modelName === "" ? "" : ` (${config.modelName})`;
  if (config.isDemoModel) {
    return t(
      "Your messages are answered by a small demonstration model{name}. It often misunderstands and can be wrong. Please do not rely on what it says.",
      { name },
    );
  }
  return t(
    "Your messages are answered by an AI model{name}. It can misunderstand and be wrong. Please do not rely on it alone.",
    { name },
  );
}

/** Ways to begin for those who do not know how; what is pressed is sent as it stands. */
const BEGINNINGS = [
  "I had a hard day and want to talk",
  "Something is worrying me",
  "Help me prepare a difficult talk",
];

function Suggestions({ config, store }: Pick<IntroProps, "config" | "store">) {
  const own = config.suggestions.length > 0 ? config.suggestions : BEGINNINGS.map((beginning) => t(beginning));
  const begin = (suggestion: string, isByKeyboard: boolean) => {
    store.send(suggestion);
    if (isByKeyboard) document.querySelector("textarea")?.focus(); // the buttons go, the focus must not
  };
  return (
    <div class="suggestions">
      {own.map((suggestion) => (
        <button
          type="button"
          class="button"
          dir="auto"
          key={suggestion}
          onClick={(event) => begin(suggestion, event.detail === 0)}
        >
          {suggestion}
        </button>
      ))}
    </div>
  );
}
