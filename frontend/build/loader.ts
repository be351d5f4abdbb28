// Builds the widget's scripts for other people's pages: `widget.js`, a classic script without names of its own, and
// `widget-panel.js`, the module that it imports at the first opening; and `refused.js`, for frames that show no chat. Each
// is one file without imports.

import { build, type Plugin } from "vite";

const SCRIPTS = [
  { fileName: "widget.js", input: "src/loader/index.ts", format: "iife" },
  { fileName: "widget-panel.js", input: "src/loader/panel.ts", format: "es" },
  { fileName: "refused.js", input: "src/widget/refused.ts", format: "iife" },
] as const;

export type ScriptName = (typeof SCRIPTS)[number]["fileName"];

/** A script's text, as it is served. */
export async function buildScript(name: ScriptName): Promise<string> {
  const { fileName, input, format } = SCRIPTS.find((script) => script.fileName === name) ?? SCRIPTS[0];
  const built = await build({
    configFile: false,
    logLevel: "warn",
    build: {
      write: false,
      target: "es2022",
      // As a library: an application's build would add its own code around `import()`.
      lib: { entry: input, formats: [format], name: "widget", fileName: () => fileName },
      rollupOptions: { output: { minify: true } },
    },
  });
  const [script] = [built].flat().flatMap((one) => ("output" in one ? one.output : []));
  if (script?.type !== "chunk") throw new Error(`${input} did not become one script.`);
  return script.code;
}

/** Adds the scripts to the build of the pages. */
export function withLoader(): Plugin {
  return {
    name: "rapport:loader",
    apply: "build",
    async generateBundle() {
      for (const { fileName } of SCRIPTS) {
        this.emitFile({ type: "asset", fileName, source: await buildScript(fileName) });
      }
    },
  };
}
