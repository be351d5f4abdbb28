// How the two scripts of the widget meet: `widget.js` keeps the launcher, `widget-panel.js` comes at the first opening.

import type { Identity } from "../hostlink";
import type { ErrorCode, EventName, Options } from "./names";

/** What the launcher offers to the panel's card. */
export interface Seat {
  readonly site: string;
  /** Folder of our origin that the script came from. */
  readonly base: URL;
  /** Holds the shadow root; custom properties are set here. */
  readonly host: HTMLElement;
  readonly root: ShadowRoot;
  readonly section: HTMLElement;
  readonly launcher: HTMLElement;
  options: Options;
  identity: Identity | null;
  isOpen: boolean;
  unread: number;
  /** Draws the launcher anew after a change of the four above. */
  draw(): void;
  tell(event: EventName, facts?: object): void;
  /** Tells the host page what is wrong, in the console and as an event. */
  fail(code: ErrorCode, sentence: string): void;
  /** The chat does not come: says so to the visitor too. */
  giveUp(sentence: string): void;
  closeOthers(): void;
}

/** What `widget-panel.js` gives for a seat. */
export interface Panel {
  open(): void;
  close(): void;
  /** Options or identity have changed. */
  follow(): void;
  reset(): void;
  destroy(): void;
}

export type MakePanel = (seat: Seat) => Panel;
