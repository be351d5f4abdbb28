// How the two pages are built and tested. `RAPPORT_FRONT_OUT` names another folder for the build.
import type { UserConfig } from "vite";
import { defineConfig } from "vitest/config";
import { withCompressed } from "./build/compressed.ts";
import { withElements } from "./build/elements.ts";
import { withLoader } from "./build/loader.ts";
import { withoutPreload } from "./build/preload.ts";
import { withStaff } from "./build/staff.ts";

declare const process: { env: Record<string, string | undefined> };

const pages: UserConfig = {
  base: "./",
  build: {
    outDir: process.env.RAPPORT_FRONT_OUT ?? "dist",
    emptyOutDir: true,
    manifest: "manifest.json",
    modulePreload: false,
    target: "es2022",
    // Nothing in our style sheets needs rewriting for older browsers, and the rewriting of colour schemes costs space.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // The content policy of our pages allows images from `data:` but the pages need none; nothing is inlined.
    assetsInlineLimit: 0,
    rollupOptions: {
      input: { chat: "src/widget/main.ts" },
      output: {
        // All that is needed at once is one file, as it is compressed best; the bundler would cut off what later files use too.
        codeSplitting: { groups: [{ name: "chat", tags: ["$initial"] }] },
        // Fixed names: the Django templates name these files.
        entryFileNames: "[name].js",
        assetFileNames: "[name][extname]",
        chunkFileNames: "[name]-[hash].js",
      },
    },
  },
};

export default defineConfig({
  ...pages,
  plugins: [withElements(), withoutPreload(), withStaff(pages), withLoader(), withCompressed()],
  test: {
    include: ["tests/**/*.test.{ts,tsx}"],
    environment: "node",
    restoreMocks: true,
    pool: "threads",
    maxWorkers: 2,
  },
});
