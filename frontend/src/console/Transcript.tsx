// The transcript page: a conversation's turns with their priorities and grades, live, and a box to write to the visitor.

import { useMemo } from "preact/hooks";
import { stopSentence } from "../texts";
import { Alerts } from "./Alerts";
import type { StaffApi } from "./api";
import type { StaffConfig } from "./config";
import { PageHead } from "./PageHead";
import { StaffComposer } from "./StaffComposer";
import { NoteCard, TurnCard } from "./TurnCard";
import { type TranscriptView, useTranscript } from "./useTranscript";

export function Transcript({ config, api }: { readonly config: StaffConfig; readonly api: StaffApi }) {
  const view = useTranscript(config, api);
  const { state } = view;
  const title = `Conversation ${config.conversation.slice(0, 8)}`;
  return (
    <div class="staff">
      <PageHead title={title} />
      <Alerts api={api} config={config} conversation={config.conversation} />
      <LiveLine view={view} mayReveal={config.mayReveal} />
      {view.problem !== "" && (
        <p class="problem" role="alert">
          {view.problem}
        </p>
      )}
      {state.isLoaded && state.turns.length + state.notes.length === 0 && (
        <p class="empty">Nobody has written anything here yet.</p>
      )}
      {state.notes.map((note) => (
        <NoteCard key={note.id} note={note} />
      ))}
      {state.turns.map((turn, at) => (
        <TurnCard key={turn.id} turn={turn} place={at + 1} />
      ))}
      {state.next !== null && (
        <button type="button" class="button more" onClick={view.loadMore}>
          Show more turns
        </button>
      )}
      {state.isVisitorTyping && <p class="quiet">The visitor is writing.</p>}
      <StaffComposer api={api} conversation={config.conversation} feed={view.feed} />
    </div>
  );
}

function LiveLine({ view, mayReveal }: { readonly view: TranscriptView; readonly mayReveal: boolean }) {
  const words = useMemo(() => liveWords(view.status), [view.status]);
  return (
    <div class="live-line">
      <p role="status" class="quiet">
        <span class={view.status.kind === "open" ? "live-dot on" : "live-dot"} aria-hidden="true" />
        {words}
      </p>
      {view.status.kind !== "open" && view.status.kind !== "connecting" && (
        <button type="button" class="link" onClick={() => view.feed.reconnect()}>
          Try now
        </button>
      )}
      {mayReveal && !view.isRevealed && (
        <button type="button" class="link" onClick={view.reveal}>
          Show unredacted text (this is recorded)
        </button>
      )}
    </div>
  );
}

function liveWords(status: TranscriptView["status"]): string {
  if (status.kind === "open") return "Live: new messages and grades appear by themselves.";
  if (status.kind !== "stopped") return "Connecting to live updates.";
  return status.reason === "token" ? "You are signed out. Please sign in again." : stopSentence(status.reason);
}
