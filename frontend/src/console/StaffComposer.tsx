// A member of staff writes to the visitor. The same text under the same id is one message, however often it is sent.

import { useId, useRef, useState } from "preact/hooks";
import { problemOf } from "../protocol";
import { errorSentence } from "../texts";
import { type StaffApi, StaffApiError } from "./api";
import type { Feed } from "./feed";

interface StaffComposerProps {
  readonly api: StaffApi;
  readonly conversation: string;
  readonly feed: Feed;
}

function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const TYPING_EVERY_MS = 3_000;

export function StaffComposer({ api, conversation, feed }: StaffComposerProps) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const [said, setSaid] = useState("");
  const clientId = useRef(newId());
  const typedAt = useRef(0);
  const field = useId();
  const send = async (event: Event) => {
    event.preventDefault();
    const problem = problemOf(text);
    if (problem) {
      setSaid(errorSentence(problem, null));
      return;
    }
    setSending(true);
    try {
      await api.post(conversation, { client_id: clientId.current, text: text.trim() });
      clientId.current = newId();
      setText("");
      setSaid("Sent.");
    } catch (error) {
      setSaid(error instanceof StaffApiError ? error.sentence : "That could not be sent. Please try again.");
    }
    setSending(false);
  };
  const change = (next: string) => {
    setText(next);
    setSaid("");
    if (Date.now() - typedAt.current < TYPING_EVERY_MS) return;
    typedAt.current = Date.now();
    feed.typing();
  };
  return (
    <form class="staff-composer" onSubmit={send}>
      <label for={field}>Write to the visitor, as yourself</label>
      <textarea id={field} rows={3} dir="auto" value={text} onInput={(event) => change(event.currentTarget.value)} />
      <div class="choices">
        <button type="submit" class="button strong" disabled={isSending || text.trim() === ""}>
          Send
        </button>
        <p role="status" class="quiet">
          {said}
        </p>
      </div>
    </form>
  );
}
