// A browser may refuse storage to frames of other sites. Then the page gets a storage of its own that lasts as long as it
// does: the conversation goes on, and is forgotten at the next load.

/** What `shared/local.ts` uses of the browser's storage; the keys are its own properties, as there. */
function inMemory(): object {
  const kept: Record<string, string> = Object.create({
    getItem: (key: string) => kept[key] ?? null,
    setItem: (key: string, value: string) => {
      kept[key] = value;
    },
    removeItem: (key: string) => {
      delete kept[key];
    },
  });
  return kept;
}

export function mendStorage(own: Window): void {
  try {
    own.localStorage.getItem("");
  } catch {
    Object.defineProperty(own, "localStorage", { value: inMemory() });
  }
}
