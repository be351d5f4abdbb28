// The list of conversations, the most recently active first, with the open alerts above it. It holds no texts.

import { useCallback, useEffect, useState } from "preact/hooks";
import { browserPlatform, socketUrl } from "../platform";
import { Alerts } from "./Alerts";
import { type StaffApi, StaffApiError } from "./api";
import type { StaffConfig } from "./config";
import { Feed } from "./feed";
import { moment, words } from "./format";
import { PageHead } from "./PageHead";
import type { ConversationRow } from "./turns";

const GATHER_MS = 500;

interface InboxProps {
  readonly config: StaffConfig;
  readonly api: StaffApi;
}

export function Inbox({ config, api }: InboxProps) {
  const { rows, next, isLoaded, problem, load } = useConversations(api);
  const pulse = useInboxPulse(config);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `pulse` makes it look again
  useEffect(() => {
    void load(null);
  }, [load, pulse]);
  return (
    <div class="staff">
      <PageHead title="Conversations" />
      <Alerts api={api} config={config} conversation="" pulse={pulse} />
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {isLoaded && rows.length === 0 && <p class="empty">No conversations yet.</p>}
      {rows.length > 0 && (
        <ul class="inbox">
          {rows.map((row) => (
            <InboxRow key={row.id} row={row} href={`${config.transcriptPath}${row.id}/`} />
          ))}
        </ul>
      )}
      {next !== null && (
        <button type="button" class="button more" onClick={() => load(next)}>
          Show older conversations
        </button>
      )}
    </div>
  );
}

function InboxRow({ row, href }: { readonly row: ConversationRow; readonly href: string }) {
  const turns = row.turns === 1 ? "1 turn" : `${row.turns} turns`;
  return (
    <li>
      <a class="inbox-row" href={href}>
        <span class="inbox-who">
          <strong>{row.id.slice(0, 8)}</strong>
          <span class="quiet">{row.site}</span>
        </span>
        <span class="inbox-tags">
          {row.openAlerts > 0 && (
            <span class="tag alert">{row.openAlerts === 1 ? "1 alert" : `${row.openAlerts} alerts`}</span>
          )}
          {row.card !== "none" && row.card !== "" && <span class="tag alert">card: {row.card}</span>}
          {row.control === "human" && <span class="tag">answered by a person</span>}
          {row.state !== "open" && <span class="tag">{words(row.state)}</span>}
          {row.kind !== "visitor" && <span class="tag">{words(row.kind)}</span>}
        </span>
        <span class="inbox-facts quiet">
          {turns}
          <time dateTime={row.lastActivityAt}>{moment(row.lastActivityAt)}</time>
        </span>
      </a>
    </li>
  );
}

function useConversations(api: StaffApi) {
  const [rows, setRows] = useState<readonly ConversationRow[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [isLoaded, setLoaded] = useState(false);
  const [problem, setProblem] = useState("");
  /** null loads the newest page and keeps what was loaded beyond it. */
  const load = useCallback(
    async (cursor: string | null) => {
      try {
        const page = await api.conversations(cursor);
        const ids = new Set(page.results.map((row) => row.id));
        setRows((before) => {
          const kept = before.filter((row) => !ids.has(row.id));
          return cursor === null ? [...page.results, ...kept] : [...kept, ...page.results];
        });
        setNext((before) => (cursor === null && before !== null ? before : page.next));
        setLoaded(true);
        setProblem("");
      } catch (error) {
        setProblem(error instanceof StaffApiError ? error.sentence : "The answer of the server could not be read.");
      }
    },
    [api],
  );
  return { rows, next, isLoaded, problem, load };
}

/** Rises when something in the inbox changed; many events at once make one step. */
function useInboxPulse(config: StaffConfig): number {
  const [pulse, setPulse] = useState(0);
  useEffect(() => {
    let timer: number | null = null;
    const soon = () => {
      timer ??= window.setTimeout(() => {
        timer = null;
        setPulse((before) => before + 1);
      }, GATHER_MS);
    };
    const feed = new Feed({
      url: socketUrl(config.socketPath),
      topic: "inbox",
      platform: browserPlatform,
      onEvent: soon,
      onResync: soon,
      onStatus: () => undefined,
    });
    feed.open();
    return () => {
      feed.close();
      if (timer !== null) window.clearTimeout(timer);
    };
  }, [config]);
  return pulse;
}
