// The store's snapshot as a component's state.

import { useLayoutEffect, useState } from "preact/hooks";
import type { ChatStore, Snapshot } from "./store";

export function useSnapshot(store: ChatStore): Snapshot {
  const [snapshot, setSnapshot] = useState(store.read);
  useLayoutEffect(() => {
    setSnapshot(store.read());
    return store.subscribe(() => setSnapshot(store.read()));
  }, [store]);
  return snapshot;
}
