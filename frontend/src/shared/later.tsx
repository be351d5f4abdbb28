// Parts that come with a later file: what a page needs before its first finished answer stays small.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** A part of the page in a file of its own. */
export interface Later<P extends object> {
  /** Fetches the file once; after a failure the next call tries again. */
  load(): Promise<ComponentType<P>>;
  /** The part once its file is there; until then `meanwhile`. */
  readonly Part: ComponentType<P>;
}

export function later<P extends object>(
  fetchPart: () => Promise<ComponentType<P>>,
  meanwhile: (props: P) => preact.VNode | null = () => null,
): Later<P> {
  let Known: ComponentType<P> | null = null;
  let coming: Promise<ComponentType<P>> | null = null;
  const load = () => {
    coming ??= fetchPart().then(
      (found) => {
        Known = found;
        return found;
      },
      (reason: unknown) => {
        coming = null;
        throw reason;
      },
    );
    return coming;
  };
  const Part = (props: P) => {
    const [isHere, setHere] = useState(Known !== null);
    useEffect(() => {
      if (isHere) return;
      let isWanted = true;
      const arrive = () => isWanted && setHere(true);
      const ask = () => load().then(arrive, () => undefined); // without a line: the next `online` asks again
      ask();
      window.addEventListener("online", ask);
      return () => {
        isWanted = false;
        window.removeEventListener("online", ask);
      };
    }, [isHere]);
    return Known ? <Known {...props} /> : meanwhile(props);
  };
  return { load, Part };
}
