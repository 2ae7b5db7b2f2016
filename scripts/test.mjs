import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withPostgres } from "./postgres.mjs";
import { withRedis } from "./redis.mjs";
import { main, runPackage, SetupError } from "./run.mjs";
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

await main(async () => {
  const chosen = process.argv.slice(2);
  await ensurePackages();
  await ensureBuild();
  await ensureBubblewrap();
  await ensureRedis();
  await ensureChromium();
  console.log("Checking types.");
  if (!(await checkTypes())) throw new SetupError("The type check failed, so no test was run; the errors are above.");

  // Chosen tests start what they need by themselves.
  const runs =
    chosen.length > 0 ? [await runVitest(chosen, process.execPath)] : await withPostgres(() => withRedis(runAll));
  if (chosen.length > 0) console.log("Only the chosen tests were run; the Node 24 part was left out.");
  const total = runs.reduce(add);
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed === 0 ? 0 : 1;
});

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

/** @returns {Promise<Counts[]>} */
async function runAll() {
  const first = await runVitest([], process.execPath);
  console.log(`Running ${storeSuite} on Node 24 with node:sqlite.`);
  // The other stores depend on nothing that a later Node brings.
  process.env.SKEIN_TEST_STORE = "sqlite";
  return [first, await runVitest([storeSuite], await ensureNode24())];
}

/**
 * One run of vitest. A run that executes no test, or that fails outside of any test, counts as one failure, so that
 * the closing line never looks better than the exit code.
 * @param {readonly string[]} args
 * @param {string} node
 * @returns {Promise<Counts>}
 */
async function runVitest(args, node) {
  const folder = mkdtempSync(join(tmpdir(), "skein-test-"));
  const report = join(folder, "report.json");
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const code = await runPackage("vitest/vitest.mjs", ["run", ...reporters, ...args], { node });
    const counts = existsSync(report) ? readReport(report) : { passed: 0, failed: 0, skipped: 0 };
    if (counts.failed > 0) return counts;
    if (counts.passed === 0) return fail(counts, "This run executed no test, which counts as one failure.");
    if (code !== 0) return fail(counts, "Vitest failed outside of any test, which counts as one failure.");
    return counts;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} path
 * @returns {Counts}
 */
function readReport(path) {
  const report = JSON.parse(readFileSync(path, "utf8"));
  // A file that does not load has no failing test of its own.
  const broken = report.testResults.filter(
    (/** @type {{ status: string, assertionResults: { status: string }[] }} */ file) =>
      file.status === "failed" && file.assertionResults.every((test) => test.status !== "failed"),
  );
  const silent = printSkipped(report.testResults);
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length + silent,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/**
 * Prints how many tests were skipped for which reason, and returns how many were skipped without one.
 * @param {{ assertionResults: { status: string, fullName: string, meta: { skipReason?: string } }[] }[]} files
 */
function printSkipped(files) {
  const reasons = new Map();
  let silent = 0;
  for (const { status, fullName, meta } of files.flatMap((file) => file.assertionResults)) {
    if (status === "passed" || status === "failed") continue;
    if (meta.skipReason === undefined) {
      console.error(`"${fullName}" was skipped without a reason, which counts as one failure.`);
      silent += 1;
    } else reasons.set(meta.skipReason, (reasons.get(meta.skipReason) ?? 0) + 1);
  }
  for (const [reason, count] of reasons) console.log(`${count} skipped because ${reason}.`);
  return silent;
}

/**
 * @param {Counts} counts
 * @param {string} sentence
 * @returns {Counts}
 */
function fail(counts, sentence) {
  console.error(sentence);
  return { ...counts, failed: counts.failed + 1 };
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
