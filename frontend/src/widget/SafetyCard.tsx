// The safety card: stands above the conversation before any answer is shown, and stays until it no longer applies.
// It promises no person: whoever reads it should take the lines it names.

import { useEffect, useState } from "preact/hooks";
import type { Card } from "../conversation";
import { t } from "../i18n";
import { Icon, SHIELD } from "../shared/icons";
import type { ChatConfig } from "./config";
import { Helplines, Line } from "./Helplines";
import type { ChatStore } from "./store";

const WATCH = "If things feel like too much, the people on these lines are there to listen.";
const WORDS: Readonly<Record<string, string>> = {
  high: "What you wrote sounds very heavy. Please do not stay alone with it: the people on these lines are there for exactly this.",
  watch: WATCH,
};

interface SafetyCardProps {
  readonly card: Card;
  readonly config: ChatConfig;
  readonly store: ChatStore;
}

export function SafetyCard({ card, config, store }: SafetyCardProps) {
  const [isFolded, setFolded] = useState(card.isAcknowledged);
  useEffect(() => {
    if (card.level === "high" && !card.isAcknowledged) setFolded(false);
  }, [card]);
  const lines = card.resources.length > 0 ? card.resources : config.helplines;
  const first = lines.find((line) => line.country === config.country) ?? lines[0];
  return (
    <section class={isFolded ? "card folded" : "card"} aria-label={t("Support lines")} data-level={card.level}>
      <div class="card-head">
        <Icon path={SHIELD} />
        <h2>{t("You do not have to carry this alone")}</h2>
        <button type="button" class="link" aria-expanded={!isFolded} onClick={() => setFolded(!isFolded)}>
          {isFolded ? t("Show") : t("Hide")}
        </button>
      </div>
      {isFolded && first && (
        <ul class="lines">
          <Line line={first} />
        </ul>
      )}
      {!isFolded && (
        <>
          <Helplines lines={lines} siteCountry={config.country} isChoiceLast />
          <p>{t(WORDS[card.level] ?? WATCH)}</p>
          <div class="card-foot">
            <p class="quiet">
              {card.isStaffed
                ? t(
                    "Our team has been told. We cannot promise when somebody reads this, so please use the lines above.",
                  )
                : t("Nobody may be reading this chat right now, so please use the lines above.")}{" "}
              {t("This is an AI: not a medical device, not an emergency service.")}
            </p>
            <Misunderstood card={card} store={store} onSaid={() => setFolded(true)} />
          </div>
        </>
      )}
    </section>
  );
}

function Misunderstood({ card, store, onSaid }: { readonly card: Card; readonly store: ChatStore; onSaid(): void }) {
  if (card.isAcknowledged) return <p class="quiet">{t("Thank you for saying so. The lines stay here in case.")}</p>;
  const say = () => {
    store.acknowledgeCard();
    if (store.chat.card?.isAcknowledged) onSaid();
  };
  return (
    <button type="button" class="button" onClick={say}>
      {t("You misunderstood me")}
    </button>
  );
}
