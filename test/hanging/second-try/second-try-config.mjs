import { defineConfig } from "vitest/config";

/** Runs the files of this folder, whose tests fail on purpose. */
export default defineConfig({
  test: { root: import.meta.dirname, include: ["*.ts"], setupFiles: ["../../progress.ts"], pool: "forks" },
});
