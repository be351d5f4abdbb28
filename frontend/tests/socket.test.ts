import { beforeEach, describe, expect, it } from "vitest";
import { CLOSE } from "../src/protocol";
import { afterClose, backoffMs, LiveSocket, type Status } from "../src/socket";
import { settle, TestPlatform } from "./sockets";

let platform: TestPlatform;
let statuses: Status[];
let frames: unknown[];
let refusals: number;
let prepare: () => Promise<void>;
let socket: LiveSocket;

beforeEach(() => {
  platform = new TestPlatform();
  statuses = [];
  frames = [];
  refusals = 0;
  prepare = () => Promise.resolve();
  socket = new LiveSocket({
    url: "ws://here/ws/chat/",
    platform,
    prepare: () => prepare(),
    greet: () => ['{"type":"hello"}'],
    onFrame: (content) => frames.push(content),
    onStatus: (status) => statuses.push(status),
    onTokenRefused: () => {
      refusals += 1;
      return true;
    },
  });
});

async function connected(): Promise<void> {
  socket.open();
  await settle();
  platform.wire.open();
  platform.wire.receive({ type: "welcome" });
}

function lastStatus(): Status | undefined {
  return statuses.at(-1);
}

describe("a line", () => {
  it("greets first and counts as open once the server answered", async () => {
    socket.open();
    await settle();
    platform.wire.open();
    expect(platform.wire.types).toEqual(["hello"]);
    expect(socket.isOpen).toBe(false);
    expect(socket.send("x")).toBe(false);
    platform.wire.receive({ type: "welcome" });
    expect(socket.isOpen).toBe(true);
    expect(frames).toEqual([{ type: "welcome" }]);
  });

  it("pings every 20 s and keeps pongs to itself", async () => {
    await connected();
    await platform.pass(20_000);
    platform.wire.receive({ type: "pong" });
    await platform.pass(20_000);
    expect(platform.wire.types).toEqual(["hello", "ping", "ping"]);
    expect(frames).toHaveLength(1);
  });

  it("is given up when a ping is not answered, and opened anew at once", async () => {
    await connected();
    const first = platform.wire;
    await platform.pass(20_000 + 8_000);
    expect(first.isClosed).toBe(true);
    expect(platform.wires).toHaveLength(2);
    first.receive({ type: "message.changed" });
    expect(frames).toHaveLength(1);
  });

  it("is given up when nobody answers the greeting", async () => {
    socket.open();
    await settle();
    platform.wire.open();
    await platform.pass(10_000);
    expect(platform.wires[0]?.isClosed).toBe(true);
    expect(lastStatus()?.kind).toBe("waiting");
  });

  it("does not count as open when the greeting was answered by an error", async () => {
    socket.open();
    await settle();
    platform.wire.open();
    platform.wire.receive({ type: "error", code: "unavailable" });
    expect(socket.isOpen).toBe(false);
    expect(frames).toEqual([{ type: "error", code: "unavailable" }]);
    await platform.pass(12_000);
    expect(platform.wires).toHaveLength(2);
  });

  it("survives a frame that is not JSON", async () => {
    await connected();
    platform.wire.onmessage?.({ data: "<html>" });
    expect(socket.isOpen).toBe(true);
  });
});

describe("coming back", () => {
  it("waits 0.5 s to 30 s, doubling, with jitter", () => {
    expect(backoffMs(0, () => 0)).toBe(500);
    for (let tries = 0; tries < 40; tries += 1) {
      for (const dice of [0, 0.3, 0.999]) {
        const wait = backoffMs(tries, () => dice);
        expect(wait).toBeGreaterThanOrEqual(500);
        expect(wait).toBeLessThanOrEqual(30_000);
      }
    }
    expect(backoffMs(3, () => 0)).toBeLessThan(backoffMs(3, () => 1));
    expect(backoffMs(6, () => 0)).toBeGreaterThan(backoffMs(3, () => 1));
  });

  it("happens at once when the page wakes up", async () => {
    await connected();
    platform.wire.drop(1006);
    expect(platform.wires).toHaveLength(1);
    platform.wake();
    await settle();
    expect(platform.wires).toHaveLength(2);
  });

  it("finds out within 1.2 s of waking that a line died in its sleep", async () => {
    await connected();
    platform.wake();
    expect(platform.wire.types).toEqual(["hello", "ping"]);
    await platform.pass(1_200);
    expect(platform.wires).toHaveLength(2);
  });

  it("keeps a line that answers after waking", async () => {
    await connected();
    platform.wake();
    platform.wire.receive({ type: "pong" });
    await platform.pass(5_000);
    expect(platform.wires).toHaveLength(1);
  });

  it("slows down for a server that drops every line at once", async () => {
    socket.open();
    for (let turn = 0; turn < 6; turn += 1) {
      await settle();
      platform.wire.open();
      platform.wire.receive({ type: "welcome" });
      platform.wire.drop(1011);
      const status = lastStatus();
      if (status?.kind !== "waiting") throw new Error("It does not wait.");
      await platform.pass(status.waitMs);
    }
    const waits = statuses.flatMap((status) => (status.kind === "waiting" ? [status.waitMs] : []));
    expect(waits.at(-1)).toBeGreaterThan(10_000);
  });

  it("goes on when the preparation fails", async () => {
    prepare = () => Promise.reject(new Error("offline"));
    socket.open();
    await settle();
    expect(lastStatus()?.kind).toBe("waiting");
    prepare = () => Promise.resolve();
    await platform.pass(1_000);
    expect(platform.wires).toHaveLength(1);
  });

  it("ends when it is left, whatever the old line still says", async () => {
    await connected();
    const wire = platform.wire;
    socket.close();
    wire.drop(1006);
    platform.wake();
    await platform.pass(60_000);
    expect(platform.wires).toHaveLength(1);
  });
});

describe("close codes", () => {
  it("decide whether to come back", () => {
    const kinds = Object.fromEntries(Object.entries(CLOSE).map(([name, code]) => [name, afterClose(code).kind]));
    expect(kinds).toEqual({
      malformed: "stop",
      token: "renew",
      origin: "stop",
      idle: "pause",
      replaced: "stop",
      tooLarge: "retry",
      rate: "retry",
      slowReader: "retry",
      restart: "retry",
      overloaded: "retry",
    });
    expect(afterClose(1006).kind).toBe("retry");
  });

  it("4401 asks for a new token and comes back at once, but not for ever", async () => {
    await connected();
    for (let turn = 0; turn < 6 && lastStatus()?.kind !== "stopped"; turn += 1) {
      platform.wire.open();
      platform.wire.drop(CLOSE.token);
      await platform.pass(10_000);
    }
    expect(refusals).toBe(4);
    expect(lastStatus()).toEqual({ kind: "stopped", reason: "token" });
  });

  it("4409 stays away until the visitor asks for this tab", async () => {
    await connected();
    platform.wire.drop(CLOSE.replaced);
    platform.wake();
    await platform.pass(120_000);
    expect(platform.wires).toHaveLength(1);
    socket.retryNow();
    await settle();
    expect(platform.wires).toHaveLength(2);
  });

  it("4408 sleeps until something happens", async () => {
    await connected();
    platform.wire.drop(CLOSE.idle);
    await platform.pass(120_000);
    expect(platform.wires).toHaveLength(1);
    socket.send('{"type":"typing"}');
    await settle();
    expect(platform.wires).toHaveLength(2);
  });

  it("4429 keeps its distance", async () => {
    await connected();
    platform.wire.drop(CLOSE.rate);
    await platform.pass(19_000);
    expect(platform.wires).toHaveLength(1);
  });
});
