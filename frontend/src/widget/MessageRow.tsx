// One message as it is shown: the visitor's, the AI's with its actions, the team's, a safety message.

import { t } from "../i18n";
import { hasEnded, type Row, type Rows } from "../rows";
import { memo } from "../shared/memo";
import { PlainText } from "../shared/Text";
import { Dots } from "./Dots";
import { Failure } from "./Failure";
import { actions, formatted } from "./parts";
import type { ChatStore } from "./store";

interface MessageRowProps {
  readonly row: Row;
  readonly siblings: Rows;
  /** Only the newest turn's reply may be written anew. */
  readonly isLast: boolean;
  readonly store: ChatStore;
}

const LABELS: Readonly<Record<Row["kind"], string>> = {
  visitor: "You",
  reply: "AI",
  staff: "Team",
  safety: "Safety message",
  note: "Note",
};

function authorOf(row: Row): string {
  return row.kind === "staff" && row.author ? t("{name}, team", { name: row.author }) : t(LABELS[row.kind]);
}

function MessageBox({ row, siblings, isLast, store }: MessageRowProps) {
  const author = authorOf(row);
  const isWaiting = row.kind === "reply" && !hasEnded(row) && row.text === "";
  return (
    <article class={`row ${row.kind}`} aria-label={author} data-status={row.status} data-message={row.id}>
      {row.kind !== "visitor" && <p class="row-author">{author}</p>}
      {isWaiting ? <Dots label={t("The AI is answering")} /> : <Words row={row} />}
      {row.kind === "reply" && <Ending row={row} isLast={isLast} store={store} />}
      {row.kind === "reply" && hasEnded(row) && (
        <div class="actions-place">
          <actions.Part row={row} siblings={siblings} isLast={isLast} store={store} />
        </div>
      )}
    </article>
  );
}

/** Only an answer that has ended is laid out: a running one grows letter by letter, and people's words are theirs. */
function Words({ row }: { readonly row: Row }) {
  return row.kind === "reply" && hasEnded(row) ? <formatted.Part text={row.text} /> : <PlainText text={row.text} />;
}

function Ending({ row, isLast, store }: { readonly row: Row; readonly isLast: boolean; readonly store: ChatStore }) {
  if (row.status === "stopped") return <p class="row-note">{t("Stopped")}</p>;
  if (row.code === "cut_off") return <p class="row-note">{t("Cut off at the AI's length limit")}</p>;
  if (row.status === "blocked")
    return <Failure id={row.id} code="blocked" canRetry={isLast && row.retryable} store={store} />;
  if (row.status === "interrupted") return <Failure id={row.id} code="interrupted" canRetry={isLast} store={store} />;
  if (row.status === "failed") {
    return <Failure id={row.id} code={row.code} canRetry={isLast && row.retryable} store={store} />;
  }
  return null;
}

export const MessageRow = memo(MessageBox);
