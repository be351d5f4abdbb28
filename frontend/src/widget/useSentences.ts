// Draws a component anew once the sentences of codes are there.

import { useEffect, useState } from "preact/hooks";
import { sentences } from "./parts";

export function useSentences(): void {
  const [, setKnown] = useState(false);
  useEffect(() => {
    let isShown = true;
    sentences().then(
      () => isShown && setKnown(true),
      () => undefined, // without a line the general sentence stays
    );
    return () => {
      isShown = false;
    };
  }, []);
}
