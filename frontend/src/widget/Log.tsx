// The conversation: rows in order, the dots, the introduction. A log that screen readers read but that never speaks.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ChatState, Notice } from "../conversation";
import { t } from "../i18n";
import { BELOW, Icon } from "../shared/icons";
import { noticeText, waitText } from "../texts";
import { type Item, isAwaitingReply, lastReplyKey, runningReply } from "../timeline";
import type { ChatConfig } from "./config";
import { Dots } from "./Dots";
import { Failure } from "./Failure";
import { Intro } from "./Intro";
import { MessageRow } from "./MessageRow";
import { PendingRow } from "./PendingRow";
import type { ChatStore } from "./store";
import { useSentences } from "./useSentences";

/** Within this distance of the end the log follows what is new; further up a reader is left in peace. */
const FOLLOW_WITHIN_PX = 64;

interface LogProps {
  readonly chat: ChatState;
  readonly items: readonly Item[];
  readonly config: ChatConfig;
  readonly store: ChatStore;
}

export function Log({ chat, items, config, store }: LogProps) {
  const lastReply = lastReplyKey(items);
  const hasBegun = items.some((item) => item.kind !== "notice");
  const ownSends = items.at(-1)?.kind === "pending" ? items.length : 0;
  const { box, isBehind, noteScroll, toEnd } = useFollowing(chat, ownSends, hasBegun);
  return (
    <div class="log-frame">
      <div
        class="log"
        role="log"
        aria-live="off"
        aria-label={t("Conversation")}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
        tabIndex={0}
        ref={box}
        onScroll={noteScroll}
      >
        <div class="log-inner">
          <Intro chat={chat} config={config} store={store} hasBegun={hasBegun} />
          {items.map((item) => (
            <LogItem key={item.key} item={item} isLast={item.key === lastReply} store={store} />
          ))}
          <Unanswered chat={chat} store={store} />
          <Awaiting chat={chat} />
        </div>
      </div>
      {isBehind && (
        <button type="button" class="button to-end" onClick={toEnd}>
          <Icon path={BELOW} />
          {t("New messages")}
        </button>
      )}
    </div>
  );
}

function LogItem({
  item,
  isLast,
  store,
}: {
  readonly item: Item;
  readonly isLast: boolean;
  readonly store: ChatStore;
}) {
  if (item.kind === "message") {
    return <MessageRow row={item.row} siblings={item.siblings} isLast={isLast} store={store} />;
  }
  if (item.kind === "pending") return <PendingRow pending={item.pending} store={store} />;
  return <NoticeRow notice={item.notice} />;
}

function NoticeRow({ notice }: { readonly notice: Notice }) {
  useSentences();
  return <p class="notice">{noticeText(notice.kind, notice.name)}</p>;
}

function Unanswered({ chat, store }: { readonly chat: ChatState; readonly store: ChatStore }) {
  const last = chat.rows.at(-1);
  const failure = last?.kind === "visitor" ? chat.unanswered[last.id] : undefined;
  if (!last || !failure) return null;
  return <Failure id={last.id} code={failure.code} canRetry={failure.retryable} store={store} />;
}

function Awaiting({ chat }: { readonly chat: ChatState }) {
  if (chat.typing !== null) return <Dots label={t("{name} is writing", { name: chat.assignee ?? t("The team") })} />;
  if (!isAwaitingReply(chat) || runningReply(chat)) return null;
  return chat.queue ? <InLine {...chat.queue} /> : <Dots label={t("The AI is answering")} />;
}

function InLine({ place, expectedWaitS }: NonNullable<ChatState["queue"]>) {
  useSentences();
  return <Dots label={t("The AI is answering")} note={waitText(place, expectedWaitS)} />;
}

/** What scrolls: the log, or the page as a whole where the window is too low for a log of its own. */
function scrollerOf(box: HTMLElement): Element {
  return box.scrollHeight > box.clientHeight + 1 ? box : (document.scrollingElement ?? box);
}

/** Keeps the end in view for those who are there; tells the others that something new is below. */
function useFollowing(chat: ChatState, ownSends: number, hasBegun: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const begun = useRef(hasBegun);
  begun.current = hasBegun;
  const lastTop = useRef(0);
  const [isBehind, setBehind] = useState(false);
  const toEnd = useCallback(() => {
    isFollowing.current = true;
    setBehind(false);
    if (!box.current || !begun.current) return; // before the first message one reads from the greeting on
    const scroller = scrollerOf(box.current);
    scroller.scrollTop = scroller.scrollHeight;
    lastTop.current = scroller.scrollTop;
  }, []);
  const noteScroll = useCallback(() => {
    if (!box.current) return;
    const { scrollTop, scrollHeight, clientHeight } = scrollerOf(box.current);
    const isAtEnd = scrollHeight - scrollTop - clientHeight <= FOLLOW_WITHIN_PX;
    // Only a reader moves up; a log that grows or a window that shrinks must not end the following.
    if (isAtEnd) isFollowing.current = true;
    else if (scrollTop < lastTop.current) isFollowing.current = false;
    lastTop.current = scrollTop;
    if (isFollowing.current) setBehind(false);
  }, []);
  useLayoutEffect(() => {
    if (ownSends > 0) toEnd();
  }, [ownSends, toEnd]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs for what can make the log longer
  useLayoutEffect(() => {
    if (isFollowing.current) toEnd();
    else setBehind(true);
  }, [chat.rows, toEnd]);
  useEffect(() => {
    const node = box.current;
    window.addEventListener("scroll", noteScroll, { passive: true });
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) toEnd();
    });
    if (node) for (const part of [node, ...node.children]) observer.observe(part);
    return () => {
      window.removeEventListener("scroll", noteScroll);
      observer.disconnect();
    };
  }, [noteScroll, toEnd]);
  return { box, isBehind, noteScroll, toEnd };
}
