// A platform for tests: a clock that only moves when told to, sockets that a test opens, feeds and closes.

import type { Platform, Wire } from "../src/socket";

export class TestWire implements Wire {
  readonly sent: string[] = [];
  isClosed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { readonly data: unknown }) => void) | null = null;
  onclose: ((event: { readonly code: number }) => void) | null = null;

  send(frame: string): void {
    this.sent.push(frame);
  }

  close(): void {
    this.isClosed = true;
  }

  open(): void {
    this.onopen?.();
  }

  receive(event: object): void {
    this.onmessage?.({ data: JSON.stringify(event) });
  }

  drop(code: number): void {
    this.onclose?.({ code });
  }

  /** The types of the events that were sent, in order. */
  get types(): readonly string[] {
    return this.sent.map((frame) => (JSON.parse(frame) as { type: string }).type);
  }
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

export class TestPlatform implements Platform {
  readonly wires: TestWire[] = [];
  now = 0;
  dice = 0.5;
  private readonly timers = new Map<number, Timer>();
  private readonly wakers = new Set<() => void>();
  private lastTimer = 0;

  connect(): Wire {
    const wire = new TestWire();
    this.wires.push(wire);
    return wire;
  }

  random(): number {
    return this.dice;
  }

  setTimer(run: () => void, afterMs: number): number {
    this.lastTimer += 1;
    this.timers.set(this.lastTimer, { at: this.now + afterMs, run });
    return this.lastTimer;
  }

  clearTimer(timer: number): void {
    this.timers.delete(timer);
  }

  onWake(wake: () => void): () => void {
    this.wakers.add(wake);
    return () => this.wakers.delete(wake);
  }

  wake(): void {
    for (const wake of this.wakers) wake();
  }

  /** Moves the clock and runs what falls due, in order; lets promises settle in between. */
  async pass(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      await settle();
      const due = [...this.timers].filter(([, timer]) => timer.at <= end).toSorted(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.timers.delete(due[0]);
      this.now = due[1].at;
      due[1].run();
    }
    this.now = end;
  }

  get wire(): TestWire {
    const newest = this.wires.at(-1);
    if (!newest) throw new Error("No socket was opened.");
    return newest;
  }
}

export async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
}
