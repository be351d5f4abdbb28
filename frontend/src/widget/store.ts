// Joins the pure conversation with the browser: socket, REST calls, storage, timers. Components read its snapshot and
// call its verbs; every rule about what a state means is in `conversation.ts` and `timeline.ts`.

import { type ChatState, EMPTY, type LocalEvent, type PendingSend, reduce } from "../conversation";
import { type ClientEvent, encode, parseServerEvent, problemOf, type ServerEvent, type Thumb } from "../protocol";
import { LiveSocket, type Platform } from "../socket";
import { isUnknown } from "../texts";
import { runningReply } from "../timeline";
import { announcementOf, isHeard } from "./announce";
import { ApiError, type VisitorApi } from "./api";
import { hashing, listening, sentences } from "./parts";
import type { Keep } from "./storage";
import { VisitorToken } from "./token";

const ACCEPTED_WITHIN_MS = 10_000;
const GIVE_UP_OFFLINE_MS = 1_500;
/** A message written this long ago is not sent by itself any more: the visitor may not mean it now. */
const RESEND_BY_ITSELF_MS = 5 * 60_000;
const RESYNC_EVERY_MS = 1_000;
const TYPING_EVERY_MS = 3_000;
const TYPING_ENDS_MS = 6_000;
const KEPT_ANNOUNCEMENTS = 4;

/** What the status region says; a number of its own, so that the same words are said again. */
export interface Announcement {
  readonly id: number;
  readonly text: string;
}

export interface Snapshot {
  readonly chat: ChatState;
  /** The newest few, oldest first: what was said stays long enough to be spoken. */
  readonly announcements: readonly Announcement[];
}

export interface StoreParts {
  readonly socketUrl: string;
  readonly platform: Platform;
  readonly api: VisitorApi;
  readonly keep: Keep;
  now(): number;
  newId(): string;
}

export class ChatStore {
  #snapshot: Snapshot = { chat: EMPTY, announcements: [] };
  readonly #listeners = new Set<() => void>();
  readonly #socket: LiveSocket;
  readonly #token: VisitorToken;
  /** When each message of this page's life was written: only these go out again by themselves. */
  readonly #writtenAt = new Map<string, number>();
  #resyncedAt = Number.NEGATIVE_INFINITY;
  #resyncTimer: number | null = null;
  #presenceTimer: number | null = null;
  #typedAt = Number.NEGATIVE_INFINITY;
  readonly #parts: StoreParts;
  #announced = 0;
  #unwatch: (() => void) | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#token = new VisitorToken(parts.keep, parts.api);
    this.#socket = new LiveSocket({
      url: parts.socketUrl,
      platform: parts.platform,
      prepare: () => this.#ensureToken(),
      greet: () => [encode({ type: "hello", token: this.#token.value, last_seq: this.chat.lastSeq })],
      onFrame: (content) => this.#receive(content),
      onStatus: (status) => this.dispatch({ type: "local.connection", status }),
      onTokenRefused: () => {
        this.#token.renew();
        return true;
      },
    });
  }

  get chat(): ChatState {
    return this.#snapshot.chat;
  }

  read = (): Snapshot => this.#snapshot;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  start(): void {
    this.dispatch({ type: "local.restore", pending: this.#parts.keep.unsent() });
    this.#unwatch ??= this.#parts.keep.watch({
      put: (pending) => this.#join(pending),
      drop: (id) => this.#leaveOut(id),
    });
    this.#socket.open();
  }

  /** Leaves the socket and every timer behind. */
  leave(): void {
    this.#socket.close();
    this.#unwatch?.();
    this.#unwatch = null;
    if (this.#resyncTimer !== null) this.#parts.platform.clearTimer(this.#resyncTimer);
  }

  /** No socket until `resume`. */
  rest(): void {
    this.#socket.close();
  }

  resume(): void {
    this.#socket.open();
  }

  reconnect(): void {
    this.#socket.retryNow();
  }

  // --- what a visitor does ---

  /** false = the text may not be sent; the reason is shown. */
  send(text: string): boolean {
    const problem = problemOf(text);
    if (problem) {
      this.dispatch({ type: "local.error", code: problem });
      return false;
    }
    const pending: PendingSend = { clientId: this.#parts.newId(), text: text.trim(), state: "sending", code: null };
    this.#parts.keep.putUnsent(pending);
    this.#writtenAt.set(pending.clientId, this.#parts.now());
    this.dispatch({ type: "local.send", clientId: pending.clientId, text: pending.text });
    this.#transmit(pending);
    return true;
  }

  /** Sends a kept message again under its own id: however often this is clicked, it is one message. */
  retry(clientId: string): void {
    const pending = this.chat.outbox.find((entry) => entry.clientId === clientId);
    if (!pending || pending.state === "sending") return;
    this.#writtenAt.set(clientId, this.#parts.now());
    this.dispatch({ type: "local.retry", clientId });
    this.#socket.retryNow();
    this.#transmit(pending);
  }

  discard(clientId: string): void {
    this.#parts.keep.dropUnsent(clientId);
    this.dispatch({ type: "local.discard", clientId });
  }

  stop(): void {
    const running = runningReply(this.chat);
    if (running) this.#tell({ type: "reply.stop", message_id: running.id });
  }

  regenerate(messageId: string): void {
    if (this.#tell({ type: "reply.regenerate", message_id: messageId })) {
      this.dispatch({ type: "local.regenerate", messageId });
    }
  }

  select(messageId: string): void {
    this.#tell({ type: "reply.select", message_id: messageId });
  }

  rateReply(messageId: string, thumb: { value: Thumb; reasons: readonly string[]; comment: string }): boolean {
    const isSent = this.#tell({ type: "feedback.set", message_id: messageId, ...thumb });
    if (isSent) this.dispatch({ type: "local.feedback", messageId, value: thumb.value });
    return isSent;
  }

  acknowledgeCard(): void {
    if (this.#tell({ type: "safety.ack" })) this.dispatch({ type: "local.acknowledge" });
  }

  typing(): void {
    if (this.#parts.now() - this.#typedAt < TYPING_EVERY_MS) return;
    this.#typedAt = this.#parts.now();
    this.#socket.send(encode({ type: "typing" }));
  }

  get readsSentences(): boolean {
    return this.#parts.keep.readsSentences();
  }

  readSentences(isWanted: boolean): void {
    this.#parts.keep.setReadsSentences(isWanted);
  }

  /** Says why something could not be done. */
  fail(code: string): void {
    this.dispatch({ type: "local.error", code });
  }

  clearError(): void {
    this.dispatch({ type: "local.clearError" });
  }

  say(announcement: string | null): void {
    if (announcement !== null) this.#publish(this.chat, announcement);
  }

  /** A REST call for the visitor; false = it failed, and the reason is shown. */
  async ask(call: (api: VisitorApi) => Promise<void>): Promise<boolean> {
    try {
      await call(this.#parts.api);
      return true;
    } catch (error) {
      this.fail(error instanceof ApiError ? error.code : "unavailable");
      return false;
    }
  }

  async setConsent(granted: boolean): Promise<boolean> {
    const consent = { purpose: "improvement", granted };
    const isDone = await this.ask(async (api) => void (await api.call("POST", "consent", consent)));
    if (isDone) this.dispatch({ type: "local.consent", granted });
    return isDone;
  }

  /** Leaves nothing of the visitor in this browser; the server's part is `matters.ts`. */
  forget(): void {
    this.#socket.close();
    this.#parts.keep.forgetAll();
    this.#writtenAt.clear();
    this.dispatch({ type: "local.forget" });
  }

  /** A new conversation on the same site, for the same visitor where there still is one. */
  startAnew(): void {
    this.#socket.close();
    this.#token.renew();
    this.dispatch({ type: "local.forget" });
    this.#socket.open();
  }

  // --- inside ---

  /** Another tab sends a message: it is shown here too, and by the same rules called unsent. */
  #join(pending: PendingSend): void {
    if (this.chat.outbox.some((entry) => entry.clientId === pending.clientId)) return;
    this.dispatch({ type: "local.join", pending });
    this.#parts.platform.setTimer(() => this.#giveUp(pending.clientId), ACCEPTED_WITHIN_MS);
  }

  /** Another tab has sent it or given it up. */
  #leaveOut(clientId: string): void {
    if (this.chat.outbox.some((entry) => entry.clientId === clientId)) {
      this.dispatch({ type: "local.discard", clientId });
    }
  }

  /** What cannot wait in the outbox: said at once where there is no line. */
  #tell(event: ClientEvent): boolean {
    const isSent = this.#socket.send(encode(event));
    if (!isSent) this.dispatch({ type: "local.error", code: "offline" });
    return isSent;
  }

  #transmit(pending: PendingSend): void {
    const { clientId, text } = pending;
    const isSent = this.#socket.send(encode({ type: "message.send", client_id: clientId, text }));
    const waitMs = isSent ? ACCEPTED_WITHIN_MS : GIVE_UP_OFFLINE_MS;
    this.#parts.platform.setTimer(() => this.#giveUp(clientId), waitMs);
  }

  #giveUp(clientId: string): void {
    const entry = this.chat.outbox.find((pending) => pending.clientId === clientId);
    if (entry?.state === "sending") this.dispatch({ type: "local.unsent", clientId });
  }

  async #ensureToken(): Promise<void> {
    try {
      await this.#token.ensure();
    } catch (error) {
      const isSaid = error instanceof ApiError && error.status >= 400 && error.status < 500;
      if (isSaid) this.dispatch({ type: "local.error", code: error.code });
      throw error;
    }
  }

  #receive(content: unknown): void {
    let event: ServerEvent | null;
    try {
      event = parseServerEvent(content);
    } catch {
      return; // an event that this page cannot read must not end the chat; the next greeting brings its outcome
    }
    if (!event) return;
    if (event.type === "welcome") this.#parts.keep.setConversation(event.conversation.id);
    this.dispatch(event);
    if (event.type === "welcome") this.#resend();
    if (event.type === "reply.finished") this.#check(event);
    if (event.type === "presence" && event.is_typing) this.#endTypingLater(event.who);
  }

  /** Whether the whole answer arrived as it was written; the check comes with a later file. */
  #check({ message, sha256 }: Extract<ServerEvent, { type: "reply.finished" }>): void {
    hashing().then(
      (hash) => {
        if (hash(message.text) !== sha256) this.dispatch({ type: "local.garbled", changedSeq: message.changed_seq });
      },
      () => undefined, // without a line there is nobody to ask again either
    );
  }

  /** Nobody says that they stopped typing, so it ends by itself. */
  #endTypingLater(who: string): void {
    const { platform } = this.#parts;
    if (this.#presenceTimer !== null) platform.clearTimer(this.#presenceTimer);
    const end = () => this.dispatch({ type: "presence", who, is_typing: false });
    this.#presenceTimer = platform.setTimer(end, TYPING_ENDS_MS);
  }

  #resend(): void {
    for (const pending of this.chat.outbox) {
      const writtenAt = this.#writtenAt.get(pending.clientId);
      const isFresh = writtenAt !== undefined && this.#parts.now() - writtenAt < RESEND_BY_ITSELF_MS;
      if (!isFresh || pending.state === "refused") continue;
      this.dispatch({ type: "local.retry", clientId: pending.clientId });
      this.#transmit(pending);
    }
  }

  /** Also for what the later files do (`matters.ts`). */
  dispatch(event: ServerEvent | LocalEvent): void {
    const before = this.#snapshot.chat;
    const after = reduce(before, event);
    if (after === before) return;
    for (const pending of before.outbox) {
      const isGone = after.outbox.every((entry) => entry.clientId !== pending.clientId);
      if (isGone && event.type !== "local.restore") this.#parts.keep.dropUnsent(pending.clientId);
    }
    this.#publish(after, null);
    this.#announce(before, after);
    if (after.needsResync) this.#resync();
  }

  #announce(before: ChatState, after: ChatState): void {
    const say = () => this.say(announcementOf(before, after));
    if (after.error && after.error !== before.error && isUnknown(after.error.code)) sentences().then(say, say);
    else say();
    const reading = this.readsSentences ? "sentences" : "answers";
    if (!isHeard(before, after, reading)) return;
    listening().then(
      (heard) => this.say(heard(before, after, reading)),
      () => undefined, // the line went away with the file: the answer can still be read
    );
  }

  #resync(): void {
    if (this.#resyncTimer !== null) return;
    const waitMs = Math.max(0, this.#resyncedAt + RESYNC_EVERY_MS - this.#parts.now());
    this.#resyncTimer = this.#parts.platform.setTimer(() => {
      this.#resyncTimer = null;
      this.#resyncedAt = this.#parts.now();
      this.dispatch({ type: "local.resynced" });
      if (this.#socket.isOpen) this.#socket.greetAgain();
    }, waitMs);
  }

  #publish(chat: ChatState, said: string | null): void {
    let { announcements } = this.#snapshot;
    if (said !== null) {
      this.#announced += 1;
      announcements = [...announcements, { id: this.#announced, text: said }].slice(-KEPT_ANNOUNCEMENTS);
    }
    this.#snapshot = { chat, announcements };
    for (const listener of this.#listeners) listener();
  }
}
