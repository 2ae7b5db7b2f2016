import { readFileSync } from "node:fs";
import { expect } from "vitest";

/**
 * Property tests draw the same cases in every run, so that a run says something about the code and not about its luck.
 * `SKEIN_TEST_SEED=random npm test` draws new ones; a failure prints the seed to repeat it with.
 */
const chosen = process.env.SKEIN_TEST_SEED ?? "20261115";
const { testPath } = expect.getState();

if (chosen !== "random" && testPath !== undefined && readFileSync(testPath, "utf8").includes('from "fast-check"')) {
  const { default: fc } = await import("fast-check");
  fc.configureGlobal({ seed: Number(chosen) });
}
