import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const shared = ["src/**/*.test.ts", "studio/src/**/*.test.ts", "test/http/*.test.ts"];
/**
 * What starts a database for its file, mocks a package, counts what a process has open or adds to what all of a process share
 * (backends, built-in tools, prices, the last id) needs a process of its own.
 */
const alone = [
  "test/http/limits-heap.test.ts",
  "src/**/*-missing.test.ts",
  "src/agent/persist/*.test.ts",
  "src/agent/{check-options,run-parked}.test.ts",
  "src/agent/tools/unasked.test.ts",
  "src/internal/uuid.test.ts",
  "src/models/{context-windows,model-providers,prices}.test.ts",
  "src/session/{sandbox/sandbox-backends,sandbox/sandbox-opening,value/session-registry}.test.ts",
  "src/tree/{session-writer,to-session}.test.ts",
  "src/lifecycle/{aggregate-analytics,read-state}.test.ts",
  "src/{stores,sandboxes,workers}/**/*.test.ts",
];
/** The rest of that folder. */
const onlyShared = ["test/http/!(limits-heap).test.ts"];

export default defineConfig({
  test: {
    // Loading the same modules anew for each small file took half of the time of those files.
    projects: [
      { extends: true, test: { name: "shared", include: shared, exclude: alone, isolate: false } },
      { extends: true, test: { name: "alone", include: ["test/**/*.test.ts", ...alone], exclude: onlyShared } },
    ],
    setupFiles: ["test/property-seed.ts"],
    pool: "forks",
    // A quarter of the time of a file is spent waiting for other processes and for leases to end.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
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
