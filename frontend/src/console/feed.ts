// One topic of the staff's socket: subscribes at every connection and hands on what belongs to the topic.

import { asObject, type JsonObject, text } from "../json";
import { LiveSocket, type Platform, type Status } from "../socket";

export interface FeedOptions {
  readonly url: string;
  readonly topic: string;
  readonly platform: Platform;
  onEvent(event: JsonObject): void;
  /** Something may have been missed: load again. Called after every (re)connection and when the server says so. */
  onResync(): void;
  onStatus(status: Status): void;
}

const STAFF_EVENTS = ["subscribed", "topic.resync", "topic.event"];

export class Feed {
  private readonly socket: LiveSocket;

  constructor(private readonly options: FeedOptions) {
    this.socket = new LiveSocket({
      url: options.url,
      platform: options.platform,
      prepare: () => Promise.resolve(),
      greet: () => [JSON.stringify({ type: "subscribe", topic: options.topic })],
      onFrame: (content) => this.receive(content),
      onStatus: options.onStatus,
      onTokenRefused: () => false, // the log-in has ended: only a person can sign in again
    });
  }

  open(): void {
    this.socket.open();
  }

  close(): void {
    this.socket.close();
  }

  reconnect(): void {
    this.socket.retryNow();
  }

  typing(): void {
    this.socket.send(JSON.stringify({ type: "typing", topic: this.options.topic }));
  }

  private receive(content: unknown): void {
    try {
      const frame = asObject(content, "frame");
      const type = text(frame, "type");
      if (!STAFF_EVENTS.includes(type) || text(frame, "topic") !== this.options.topic) return;
      if (type === "topic.event") this.options.onEvent(asObject(frame.event, "event"));
      else this.options.onResync();
    } catch {
      // A frame that this page cannot read is left out; the next load brings its outcome.
    }
  }
}
