import type { TestContext } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    /** Why a test was skipped; `npm test` prints it, and fails for a test that was skipped without one. */
    skipReason?: string;
  }
}

/** Skips the test that runs, and says why. */
export function skipBecause(test: TestContext, reason: string): never {
  test.task.meta.skipReason = reason;
  return test.skip(reason);
}
