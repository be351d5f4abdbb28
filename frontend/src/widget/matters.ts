// What a visitor can do with their own data and with a chat as a whole. In the later file of the settings and the rating;
// each returns false (or null) where it failed, and then the reason is shown.

import type { ChatStore } from "./store";

function pathOf(store: ChatStore, verb: string): string {
  return `conversations/${encodeURIComponent(store.chat.conversation?.id ?? "")}/${verb}`;
}

export async function download(store: ChatStore): Promise<Blob | null> {
  let file: Blob | null = null;
  await store.ask(async (api) => {
    file = await (await api.call("GET", pathOf(store, "download"))).blob();
  });
  return file;
}

export async function endChat(store: ChatStore): Promise<boolean> {
  const isDone = await store.ask(async (api) => void (await api.call("POST", pathOf(store, "close"), {})));
  if (isDone) store.dispatch({ type: "local.closed" });
  return isDone;
}

export async function rateChat(
  store: ChatStore,
  rating: { readonly stars: number; readonly comment: string },
): Promise<boolean> {
  return store.ask(async (api) => void (await api.call("POST", pathOf(store, "rating"), rating)));
}

export async function deleteEverything(store: ChatStore): Promise<boolean> {
  store.rest(); // the server closes every socket as it erases: this page is not to begin anew meanwhile
  const isDone = await store.ask(async (api) => void (await api.call("DELETE", "me")));
  if (isDone) store.forget();
  else store.resume();
  return isDone;
}
