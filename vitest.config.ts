import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "studio/src/**/*.test.ts", "test/**/*.test.ts"],
    setupFiles: ["test/property-seed.ts"],
    pool: "forks",
    // Much of the time is spent waiting for other processes, so that every core may have a file.
    maxWorkers: "100%",
    // Only a test that hangs ends this way: how long one takes on a busy machine says nothing.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
    retry: 0,
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/**/*.test.ts"],
      reporter: ["text-summary", "html"],
    },
  },
});
