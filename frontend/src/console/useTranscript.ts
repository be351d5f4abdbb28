// A conversation's transcript as a component's state: loads pages, follows the live topic, fetches again what changed.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type JsonObject, text } from "../json";
import { browserPlatform, socketUrl } from "../platform";
import { parseServerEvent } from "../protocol";
import type { Status } from "../socket";
import { type StaffApi, StaffApiError } from "./api";
import type { StaffConfig } from "./config";
import { Feed } from "./feed";
import { follow, NOTHING_YET, type TranscriptEvent, type TranscriptState } from "./transcript";

/** Events come in bursts; one fetch answers all of a burst. */
const GATHER_MS = 250;
const TYPING_ENDS_MS = 6_000;

export interface TranscriptView {
  readonly state: TranscriptState;
  readonly status: Status;
  readonly problem: string;
  readonly isRevealed: boolean;
  readonly feed: Feed;
  loadMore(): void;
  reveal(): void;
}

function parseTopicEvent(event: JsonObject): TranscriptEvent | null {
  if (event.type === "turn.graded") return { type: "turn.graded", message_id: text(event, "message_id") };
  if (event.type === "conversation.erased") return { type: "conversation.erased" };
  return parseServerEvent(event);
}

export function useTranscript(config: StaffConfig, api: StaffApi): TranscriptView {
  const [state, setState] = useState<TranscriptState>(NOTHING_YET);
  const [status, setStatus] = useState<Status>({ kind: "connecting" });
  const [problem, setProblem] = useState("");
  const [isRevealed, setRevealed] = useState(false);
  const tell = useCallback((event: TranscriptEvent) => setState((before) => follow(before, event)), []);
  const feed = useFeed(config, { tell, setStatus });

  const fetchPage = useCallback(
    async (cursor: string | null, isAgain: boolean) => {
      tell({ type: "page.fetching", cursor });
      try {
        const page = await api.turns(config.conversation, { cursor, isRevealed });
        setProblem("");
        tell({ type: "page.loaded", page, cursor, isAgain });
      } catch (error) {
        setProblem(error instanceof StaffApiError ? error.sentence : "The answer of the server could not be read.");
      }
    },
    [api, config.conversation, isRevealed, tell],
  );

  const hasBegun = useRef(false);
  useEffect(() => {
    if (hasBegun.current) tell({ type: "topic.resync" });
    else void fetchPage(null, false);
    hasBegun.current = true;
  }, [fetchPage, tell]);

  useEffect(() => {
    if (!state.isLoaded || state.stale.length === 0) return;
    const timer = window.setTimeout(() => {
      for (const cursor of state.stale) void fetchPage(cursor, true);
    }, GATHER_MS);
    return () => window.clearTimeout(timer);
  }, [state.isLoaded, state.stale, fetchPage]);

  useEffect(() => {
    if (!state.isVisitorTyping) return;
    const end = () => tell({ type: "presence", who: "visitor", is_typing: false });
    const timer = window.setTimeout(end, TYPING_ENDS_MS);
    return () => window.clearTimeout(timer);
  }, [state.isVisitorTyping, tell]);

  return {
    state,
    status,
    problem,
    isRevealed,
    feed,
    loadMore: () => void fetchPage(state.next, false),
    reveal: () => setRevealed(true),
  };
}

interface FeedPorts {
  readonly tell: (event: TranscriptEvent) => void;
  readonly setStatus: (status: Status) => void;
}

function useFeed(config: StaffConfig, { tell, setStatus }: FeedPorts): Feed {
  const feed = useMemo(
    () =>
      new Feed({
        url: socketUrl(config.socketPath),
        topic: `conversation:${config.conversation}`,
        platform: browserPlatform,
        onEvent: (event) => {
          const parsed = parseTopicEvent(event);
          if (parsed) tell(parsed);
        },
        onResync: () => tell({ type: "topic.resync" }),
        onStatus: setStatus,
      }),
    [config, tell, setStatus],
  );
  useEffect(() => {
    feed.open();
    return () => feed.close();
  }, [feed]);
  return feed;
}
