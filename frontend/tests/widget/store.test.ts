import { beforeEach, describe, expect, it } from "vitest";
import type { PendingSend } from "../../src/conversation";
import { ApiError, type VisitorApi } from "../../src/widget/api";
import { deleteEverything } from "../../src/widget/matters";
import type { Keep, Watcher } from "../../src/widget/storage";
import { ChatStore } from "../../src/widget/store";
import { message, welcome } from "../make";
import { settle, TestPlatform } from "../sockets";

/** What a browser would keep over a reload. */
class TestKeep implements Keep {
  kept: string | null = "token-1";
  readonly sends = new Map<string, PendingSend>();
  token = () => this.kept;
  setToken = (token: string | null) => {
    this.kept = token;
  };
  unsent = () => [...this.sends.values()].map((pending) => ({ ...pending, state: "unsent" as const }));
  putUnsent = (pending: PendingSend) => void this.sends.set(pending.clientId, pending);
  dropUnsent = (clientId: string) => void this.sends.delete(clientId);
  known = "";
  watcher: Watcher = {};
  conversation = () => this.known;
  setConversation = (id: string) => {
    this.known = id;
  };
  draft = () => "";
  setDraft = () => undefined;
  readsSentences = () => false;
  setReadsSentences = () => undefined;
  watch = (on: Watcher) => {
    this.watcher = on;
    return () => undefined;
  };
  forgetAll = () => {
    this.kept = null;
    this.sends.clear();
  };
}

class TestApi implements VisitorApi {
  readonly starts: (string | null)[] = [];
  refusal: ApiError | null = null;
  start = async (previous: string | null) => {
    this.starts.push(previous);
    if (this.refusal && previous !== null) throw this.refusal;
    return { token: `token-${this.starts.length + 1}`, conversation: "conversation-1", expiresAt: null };
  };
  call = async () => new Response("{}");
}

let platform: TestPlatform;
let keep: TestKeep;
let api: TestApi;
let ids: number;

function newStore(): ChatStore {
  ids += 100;
  let next = ids;
  return new ChatStore({
    socketUrl: "ws://here/ws/chat/",
    platform,
    api,
    keep,
    now: () => platform.now,
    newId: () => {
      next += 1;
      return `c${next}`;
    },
  });
}

async function opened(store: ChatStore): Promise<void> {
  store.start();
  await settle();
  platform.wire.open();
  platform.wire.receive(welcome());
}

function sends(): readonly { client_id: string; text: string }[] {
  return platform.wires
    .flatMap((wire) => wire.sent)
    .map((frame) => JSON.parse(frame) as { type: string; client_id: string; text: string })
    .filter((event) => event.type === "message.send");
}

beforeEach(() => {
  platform = new TestPlatform();
  keep = new TestKeep();
  api = new TestApi();
  ids = 0;
});

describe("a send without a line", () => {
  it("is shown as not sent, survives a reload, and Retry clicked twice sends one message under one id", async () => {
    const before = newStore();
    before.start();
    await settle();
    before.send("Are you there?");
    await platform.pass(1_500);
    expect(before.chat.outbox[0]?.state).toBe("unsent");
    before.leave();

    const after = newStore();
    await opened(after);
    expect(sends()).toHaveLength(0);
    const clientId = after.chat.outbox[0]?.clientId ?? "";
    after.retry(clientId);
    after.retry(clientId);
    expect(sends()).toEqual([{ type: "message.send", client_id: clientId, text: "Are you there?" }]);
    platform.wire.receive({
      type: "message.accepted",
      client_id: clientId,
      message: message({ id: "v1", client_id: clientId, text: "Are you there?" }),
    });
    expect(after.chat.outbox).toHaveLength(0);
    expect(keep.sends.size).toBe(0);
  });

  it("goes out by itself, under its own id, when the line is back soon", async () => {
    const store = newStore();
    await opened(store);
    platform.wire.drop(1006);
    store.send("one");
    store.send("two");
    await platform.pass(2_000);
    platform.wire.open();
    platform.wire.receive(welcome());
    expect(sends().map((sent) => sent.text)).toEqual(["one", "two"]);
  });

  it("is not sent again when the welcome shows that the server has it", async () => {
    const store = newStore();
    await opened(store);
    store.send("one");
    const clientId = sends()[0]?.client_id ?? "";
    platform.wire.drop(1006);
    await platform.pass(1_000);
    platform.wire.open();
    const stored = message({ id: "v1", seq: 1, client_id: clientId, text: "one" });
    platform.wire.receive(welcome({ changes: [stored], conversation: { last_seq: 1 } }));
    expect(sends()).toHaveLength(1);
    expect(keep.sends.size).toBe(0);
  });

  it("waits for the visitor when the line was away for long", async () => {
    const store = newStore();
    await opened(store);
    platform.wire.drop(1006);
    store.send("one");
    await platform.pass(6 * 60_000);
    platform.wire.open();
    platform.wire.receive(welcome());
    expect(sends()).toHaveLength(0);
    expect(store.chat.outbox[0]?.state).toBe("unsent");
  });
});

describe("a gap in a reply", () => {
  it("is asked for on the open line, at most once a second", async () => {
    const store = newStore();
    await opened(store);
    const gap = { type: "reply.delta", message_id: "r1", offset: 5, text: "x" };
    platform.wire.receive(gap);
    await platform.pass(0);
    for (let turn = 0; turn < 20; turn += 1) {
      platform.wire.receive(gap);
      await platform.pass(10);
    }
    expect(platform.wire.types).toEqual(["hello", "hello"]);
    await platform.pass(1_000);
    expect(platform.wire.types).toEqual(["hello", "hello", "hello"]);
    expect(platform.wires).toHaveLength(1);
  });

  it("continues from the newest change that the page has", async () => {
    const store = newStore();
    await opened(store);
    const first = message({ id: "v1", seq: 1, changed_seq: 1 });
    platform.wire.receive({ type: "message.changed", message: first });
    platform.wire.drop(1006);
    await platform.pass(1_000);
    platform.wire.open();
    expect(JSON.parse(platform.wire.sent[0] ?? "")).toEqual({ type: "hello", token: "token-1", last_seq: 1 });
  });
});

describe("the token", () => {
  it("is fetched at the first visit and kept", async () => {
    keep.kept = null;
    const store = newStore();
    await opened(store);
    expect(api.starts).toEqual([null]);
    expect(keep.kept).toBe("token-2");
  });

  it("is renewed with the old one after 4401, and without it where the server does not know the old one", async () => {
    const store = newStore();
    await opened(store);
    platform.wire.drop(4401);
    await settle();
    expect(api.starts).toEqual(["token-1"]);
    api.refusal = new ApiError(401, "token");
    platform.wire.drop(4401);
    await platform.pass(5_000);
    expect(api.starts.slice(1)).toEqual(["token-2", null]);
    expect(store.chat.connection.kind).toBe("connecting");
  });

  it("is forgotten with everything else when the visitor deletes their data", async () => {
    const store = newStore();
    await opened(store);
    store.send("one");
    expect(await deleteEverything(store)).toBe(true);
    expect(keep.kept).toBeNull();
    expect(keep.sends.size).toBe(0);
    expect(store.chat.conversation).toBeNull();
    await platform.pass(60_000);
    expect(platform.wires).toHaveLength(1);
  });
});

describe("a deletion that the server closes the socket for", () => {
  function closeOnCall(outcome: () => Promise<Response>): void {
    api.call = () => {
      platform.wires[0]?.drop(4401);
      return outcome();
    };
  }

  it("begins no new conversation meanwhile", async () => {
    const store = newStore();
    await opened(store);
    closeOnCall(async () => new Response("{}"));
    expect(await deleteEverything(store)).toBe(true);
    await platform.pass(60_000);
    expect(platform.wires).toHaveLength(1);
    expect(api.starts).toEqual([]);
    expect(keep.kept).toBeNull();
  });

  it("goes on where it was refused", async () => {
    const store = newStore();
    await opened(store);
    closeOnCall(() => Promise.reject(new ApiError(409, "erasure_refused")));
    expect(await deleteEverything(store)).toBe(false);
    await settle();
    expect(platform.wires).toHaveLength(2);
    expect(keep.kept).toBe("token-1");
  });
});

describe("what needs a line", () => {
  it("says so instead of being lost", async () => {
    const store = newStore();
    await opened(store);
    platform.wire.drop(1006);
    store.regenerate("r1");
    expect(store.chat.error?.code).toBe("offline");
    expect(store.chat.regenerating).toBeNull();
  });
});

describe("somebody typing", () => {
  it("ends by itself", async () => {
    const store = newStore();
    await opened(store);
    platform.wire.receive({ type: "presence", who: "Alex", is_typing: true });
    expect(store.chat.typing).toBe("Alex");
    await platform.pass(6_000);
    expect(store.chat.typing).toBeNull();
  });
});

describe("another tab", () => {
  const elsewhere: PendingSend = { clientId: "c9", text: "said there", state: "sending", code: null };

  it("sends a message: it is shown here, sent by nobody else, and gone once the server has it", async () => {
    const store = newStore();
    await opened(store);
    keep.watcher.put?.(elsewhere);
    keep.watcher.put?.(elsewhere);
    expect(store.chat.outbox).toEqual([elsewhere]);
    expect(sends()).toEqual([]);
    const there = message({ id: "v9", client_id: "c9", text: "said there" });
    platform.wire.receive({ type: "message.changed", message: there });
    expect(store.chat.outbox).toEqual([]);
    keep.watcher.put?.(elsewhere); // its news may come later than the server's
    expect(store.chat.outbox).toEqual([]);
  });

  it("gives a message up: it is gone here too", async () => {
    const store = newStore();
    await opened(store);
    keep.watcher.put?.(elsewhere);
    keep.watcher.drop?.("c9");
    expect(store.chat.outbox).toEqual([]);
  });

  it("was closed before its message went out: it is called unsent here after a while", async () => {
    const store = newStore();
    await opened(store);
    keep.watcher.put?.(elsewhere);
    await platform.pass(10_000);
    expect(store.chat.outbox[0]?.state).toBe("unsent");
  });
});

describe("an announcement", () => {
  it("is a line of its own each time, and only the newest few are kept", async () => {
    const store = newStore();
    await opened(store);
    for (let count = 0; count < 6; count += 1) store.say("Copied.");
    const { announcements } = store.read();
    expect(announcements.map(({ text }) => text)).toEqual(["Copied.", "Copied.", "Copied.", "Copied."]);
    expect(new Set(announcements.map(({ id }) => id)).size).toBe(4);
  });
});
