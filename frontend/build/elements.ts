// JSX as calls of Preact's own element maker. Its JSX runtime would be a second one in the file, and lists of children cost
// more than arguments: .3 kB after gzip.

import type { Plugin } from "vite";

export function withElements(): Plugin {
  return {
    name: "rapport:elements",
    config: () => ({ oxc: { jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment", development: false } } }),
    transform: {
      filter: { id: /\.tsx$/ },
      order: "pre",
      handler: (code) => ({ code: `import { Fragment, h } from "preact"; ${code}`, map: null }),
    },
  };
}
