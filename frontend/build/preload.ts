// Without Vite's preload helper (2 kB) and its wrapping of every `import()`: our later files need nothing before them, they
// bring their own style.

import type { Plugin } from "vite";

/** `wrapped(async()=>{let{a:x}=await import("./b.js");return{a:x}},[],import.meta.url)`, as the build leaves it. */
const WRAPPED = [
  /\b\w+\(async\(\)=>\{(?:let|const)\{[^{}]*\}=await (import\([^()]*\));return\{[^{}]*\}\},\[\],import\.meta\.url\)/g,
  /\b\w+\(\(\)=>(import\([^()]*\)),\[\],import\.meta\.url\)/g,
];

export function withoutPreload(): Plugin {
  return {
    name: "rapport:without-preload",
    enforce: "pre",
    load: { filter: { id: /vite\/preload-helper/ }, handler: () => "export const __vitePreload = (load) => load();" },
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== "chunk") continue;
          for (const wrapped of WRAPPED) file.code = file.code.replace(wrapped, "$1");
        }
      },
    },
  };
}
