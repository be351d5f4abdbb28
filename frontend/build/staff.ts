// Builds the staff's pages on their own, after the visitor's: a file shared by both would make visitors fetch code that
// only staff need.

import { build, type Plugin, type UserConfig } from "vite";

export function withStaff(config: UserConfig): Plugin {
  let folder = "";
  return {
    name: "rapport:staff",
    apply: "build",
    configResolved(resolved) {
      folder = resolved.build.outDir;
    },
    async closeBundle() {
      await build({
        ...config,
        configFile: false,
        logLevel: "warn",
        build: {
          ...config.build,
          outDir: folder,
          emptyOutDir: false,
          manifest: "staff-manifest.json",
          rollupOptions: { ...config.build?.rollupOptions, input: { staff: "src/console/main.tsx" } },
        },
      });
    },
  };
}
