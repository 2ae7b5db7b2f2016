import { withPostgres } from "./postgres.mjs";
import { withRedis } from "./redis.mjs";
import { main, SetupError } from "./run.mjs";
import { runVitest, runVitestTwice } from "./run-vitest.mjs";
import {
  checkTypes,
  ensureBubblewrap,
  ensureBuild,
  ensureChromium,
  ensureNode24,
  ensurePackages,
  ensureRedis,
} from "./setup.mjs";

const storeSuite = "test/stores.test.ts";

/** @typedef {import("./run-vitest.mjs").Counts} Counts */

await main(async () => {
  const chosen = process.argv.slice(2);
  await ensurePackages();
  await ensureBuild();
  await ensureBubblewrap();
  await ensureRedis();
  await ensureChromium();
  // All tests together include the type check.
  if (chosen.length > 0) {
    console.log("Checking types.");
    if (!(await checkTypes())) throw new SetupError("The type check failed, so no test was run; the errors are above.");
  }
  // Single test files start the servers that they need themselves.
  const runs = chosen.length > 0 ? [await runVitest(chosen)] : await withPostgres(() => withRedis(runAll));
  if (chosen.length > 0) console.log("Only the chosen tests were run; the Node 24 part was left out.");
  const total = runs.reduce(add);
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed === 0 ? 0 : 1;
});

/** @returns {Promise<Counts[]>} */
async function runAll() {
  const first = await runVitestTwice([]);
  // On Node 24 the first run already includes that driver.
  if (Number.parseInt(process.versions.node, 10) >= 24) return [first];
  console.log(`Running ${storeSuite} on Node 24 with node:sqlite.`);
  // The other stores and drivers do not depend on the version of Node.
  const env = { SKEIN_TEST_STORE: "sqlite (node:sqlite)" };
  return [first, await runVitest([storeSuite], { node: await ensureNode24(), env })];
}

/**
 * @param {Counts} one
 * @param {Counts} other
 * @returns {Counts}
 */
function add(one, other) {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
  };
}
