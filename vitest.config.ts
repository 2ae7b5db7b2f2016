import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { reachableTmpdir } from "./scripts/other-account.mjs";

const all = ["src/**/*.test.ts", "studio/src/**/*.test.ts", "test/**/*.test.ts"];
/**
 * What starts programs, mocks a package, counts what a process has open, measures memory or adds to what all of a process share
 * (backends, built-in tools, prices, the last id) needs a process of its own.
 */
const alone = [
  "test/{architecture,bench,examples,hanging,linear-patterns,other-account,package,private-files,public-names}.test.ts",
  "test/{recipes,sandbox-accounts,sandboxes,site,store-model,store-on-pglite,types,wrong-arguments}.test.ts",
  "test/{architecture,faults,products,runs}/**/*.test.ts",
  "test/cli/program-tools.test.ts",
  "test/export/export-large.test.ts",
  "test/formats/growth.test.ts",
  "test/hostile/{bodies,floods,large-answers,wire}.test.ts",
  "test/http/limits-heap.test.ts",
  "test/interop/{langgraph,langgraph-growth,langgraph-validation}.test.ts",
  "test/workers/{fleet,queues,workers}.test.ts",
  "src/**/*-missing.test.ts",
  "src/agent/{active-runs,check-options,run-parked,run-waiting}.test.ts",
  "src/internal/uuid.test.ts",
  "src/models/{context-windows,prices,register-built-in}.test.ts",
  "src/session/{sandbox/sandbox-backends,sandbox/sandbox-opening,value/session-registry}.test.ts",
  "src/tree/{session-writer,to-session}.test.ts",
  "src/lifecycle/{aggregate-analytics,read-state}.test.ts",
  "src/{sandboxes,workers}/**/*.test.ts",
  "src/stores/sqlite/sqlite-store.test.ts",
];

/**
 * What takes longest, so that it is begun before the others of its project, and nothing long is left for the end, when the other
 * processes have nothing to do. The files that share processes come last, as a process is shared by files that follow one another.
 */
const long = [
  "test/types.test.ts",
  "test/faults/fleet.test.ts",
  "test/faults/queue-outage.test.ts",
  "test/hostile/wire.test.ts",
  "test/store-on-pglite.test.ts",
  "test/sandboxes.test.ts",
  "test/workers/fleet.test.ts",
  "test/faults/postgres-runs.test.ts",
  "test/faults/postgres-outage.test.ts",
  "test/examples.test.ts",
  "test/hanging.test.ts",
  "test/faults/run-claims.test.ts",
  "test/faults/postgres-watching.test.ts",
  "test/hostile/floods.test.ts",
  "test/faults/large-entries.test.ts",
  "test/hostile/large-answers.test.ts",
  "test/bench.test.ts",
  "test/runs/interleavings.test.ts",
  "test/faults/redis-cluster.test.ts",
  "test/faults/store-cut.test.ts",
  "test/workers/queues.test.ts",
  "test/faults/erase-kill.test.ts",
  "test/interop/langgraph-validation.test.ts",
  "test/recipes.test.ts",
  "test/faults/run-torture.test.ts",
  "test/hostile/bodies.test.ts",
  "test/faults/redis-processes.test.ts",
  "test/faults/writers-outage.test.ts",
  "test/stores-postgres.test.ts",
  "test/erase.test.ts",
  "test/cli/hostile-repository.test.ts",
  "test/lifecycle.test.ts",
  "test/http/limits-tools.test.ts",
  "test/workers/chat-takeover.test.ts",
  "test/browser/fleet.test.ts",
  "test/hostile/imports.test.ts",
  "test/browser/sessions.test.ts",
  "test/hostile/access.test.ts",
  "test/browser/long-session.test.ts",
  "test/export/sanitizer.test.ts",
  "test/formats/import-threads.test.ts",
  "test/cli/acp.test.ts",
  "test/hostile/words.test.ts",
  "test/cli/chat-program.test.ts",
  "test/cli/serve.test.ts",
  "test/stores.test.ts",
  "test/stores-redis.test.ts",
  "test/simulation/postgres.test.ts",
  "test/golden-stores.test.ts",
  "test/formats/hostile-ids.test.ts",
  "test/browser/parked.test.ts",
  "test/browser/accessibility.test.ts",
  "test/browser/live.test.ts",
  "test/browser/narrow.test.ts",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const index = long.findIndex((path) => moduleId.endsWith(`/${path}`));
      return (index === -1 ? long.length : index) + (project.config.isolate ? 0 : long.length + 1);
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    // Loading the same modules anew for each small file took half of the time of those files.
    projects: [
      { extends: true, test: { name: "shared", include: all, exclude: alone, isolate: false } },
      { extends: true, test: { name: "alone", include: alone } },
    ],
    setupFiles: ["test/progress.ts", "test/property-seed.ts", "test/private-home.ts", "test/file-end-setup.ts"],
    // Tests that act as another account must not fail because that account cannot reach their files.
    env: { TMPDIR: reachableTmpdir() },
    sequence: { sequencer: LongestFirst },
    pool: "forks",
    // Half of the time of a file is spent waiting for other processes and for leases to end.
    maxWorkers: availableParallelism() * 2,
    // Only a test that hangs ends this way: how long one takes on a busy machine says nothing.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
    retry: 0,
    // Compiles each file once for both projects, and not at all if an earlier run has compiled it.
    experimental: { fsModuleCache: true },
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/**/*.test.ts"],
      reporter: ["text-summary", "html"],
    },
  },
});
