import { defineConfig } from "vitest/config";

/** Runs the files of this folder that hang on purpose, in two processes at a time, as `npm test` runs its own. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["*.ts"],
    setupFiles: ["../progress.ts"],
    pool: "forks",
    maxWorkers: 3,
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
