import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { reachableTmpdir } from "./other-account.mjs";
import { descendantsOf, endProcess, endProcesses, processesWith } from "./processes.mjs";
import { checkInterrupted, root, runPackage, SetupError } from "./run.mjs";

/** Longer than the 240 seconds after which Vitest itself ends a test that waits. */
const hangSecondsDefault = 300;
const lookMs = 500;
const graceMsMax = 10_000;
const vitestMsMore = 60_000;
const timeoutMsMore = 60_000;
const longestShown = 10;
/** More files than this do not fail because the machine is busy. */
const secondTryFilesMax = 5;
const progressVariable = "SKEIN_TEST_PROGRESS";

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */
/** @typedef {Counts & { failedTests: Map<string, string[]> }} RunCounts the names of the failed tests, by file */
/** @typedef {{ pid: number, file: string, phase: "loading" | "tests" | "ending", tests: string[], timeoutMs: number, writtenAt: number }} Progress */
/** @typedef {{ status: string, fullName: string, meta: { skipReason?: string } }} TestResult */
/** @typedef {{ name: string, status: string, startTime: number, endTime: number, assertionResults: TestResult[] }} FileResult */

/**
 * One run of vitest. A run that executes no test, or that fails outside of any test, counts as one failure, so that
 * the closing line never looks better than the exit code.
 *
 * A process that makes no progress for `SKEIN_TEST_HANG_SECONDS` (300 unless set) is ended and counts as one failure; the
 * other files are run all the same. Vitest's own time limits are timers of that process, which never fire in a loop.
 * @param {readonly string[]} args
 * @param {{ node?: string, env?: Record<string, string> }} [options]
 * @returns {Promise<RunCounts>}
 */
export async function runVitest(args, { node = process.execPath, env = {} } = {}) {
  // Refuses a time that makes no sense before anything is made.
  hangSeconds();
  const folder = mkdtempSync(join(reachableTmpdir(), "skein-test-"));
  const report = join(folder, "report.json");
  const progress = join(folder, "progress");
  // Files that the tests and Vitest leave there are deleted with it. The name is short, as the path of a socket may not be long.
  const temporary = join(folder, "t");
  for (const path of [progress, temporary]) mkdirSync(path);
  for (const path of [folder, temporary]) chmodSync(path, 0o711);
  const watch = watchProgress(progress, temporary);
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const code = await runPackage("vitest/vitest.mjs", ["run", ...reporters, ...args], {
      node,
      env: { TMPDIR: temporary, ...env, [progressVariable]: progress },
      started: watch.started,
    });
    checkInterrupted();
    const results = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : null;
    return countTests(results, { code, progress, ended: watch.ended });
  } finally {
    await watch.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Runs tests, and the files with a failed test a second time, one after the other: a busy machine can fail a test that waits for another
 * process. A test that passes only then is printed, because it, or the program, has a race. `SKEIN_TEST_SECOND_TRY=off` leaves
 * the second run out. A process that was ended, or a file that did not load, always counts as a failure.
 * @param {readonly string[]} args
 * @returns {Promise<Counts>}
 */
export async function runVitestTwice(args) {
  const { failedTests, ...first } = await runVitest(args);
  const files = [...failedTests.keys()];
  if (files.length === 0 || files.length > secondTryFilesMax || process.env.SKEIN_TEST_SECOND_TRY === "off")
    return first;
  console.log(`Running ${files.map((file) => relative(root, file)).join(", ")} again, without other tests.`);
  const second = await runVitest([...args.filter((arg) => arg.startsWith("-")), ...files, "--no-file-parallelism"]);
  if (second.failed > 0) return first;
  const unstable = [...failedTests].flatMap(([file, names]) =>
    names.map((name) => ({ file: relative(root, file), name })),
  );
  for (const { file, name } of unstable)
    console.error(`Unstable: ${JSON.stringify(name)} in ${file} failed beside other tests and passed on its own.`);
  return { ...first, passed: first.passed + unstable.length, failed: first.failed - unstable.length };
}

/**
 * Ends the processes of a run that make no progress.
 * @param {string} folder where each process writes what it does
 * @param {string} temporary the temporary directory of the tests
 */
function watchProgress(folder, temporary) {
  const hangMs = hangSeconds() * 1000;
  const graceMs = Math.min(graceMsMax, hangMs);
  /** @type {Promise<unknown>[]} */
  const ending = [];
  /** @type {Set<string>} the files whose processes were ended */
  const ended = new Set();
  /** @type {Map<number, { writtenAt: number, idleMs: number }>} */
  const idle = new Map();
  /** @type {number | undefined} */
  let vitest;
  let idleMs = 0;
  let lookedAt = performance.now();
  const look = () => {
    // A machine that slept, or is too busy for this program, was so for the tests as well.
    const passedMs = Math.min(performance.now() - lookedAt, 2 * lookMs);
    lookedAt = performance.now();
    if (vitest === undefined) return;
    const all = readProgress(folder);
    const isNew = all.some(({ pid, writtenAt }) => idle.get(pid)?.writtenAt !== writtenAt);
    idleMs = isNew ? 0 : idleMs + passedMs;
    for (const { pid, writtenAt } of all) {
      const before = idle.get(pid);
      idle.set(pid, { writtenAt, idleMs: before?.writtenAt === writtenAt ? before.idleMs + passedMs : 0 });
    }
    const stale = all.filter((one) => (idle.get(one.pid)?.idleMs ?? 0) >= hangMsOf(one));
    if (stale.length > 0) endStale(stale, descendantsOf(vitest));
    // None is looked at twice; most of them have ended.
    for (const { pid, writtenAt } of stale) idle.set(pid, { writtenAt, idleMs: Number.NEGATIVE_INFINITY });
    // Vitest must first detect the end of its processes.
    const vitestMsMax = Math.max(hangMs, ...all.map(hangMsOf)) + vitestMsMore;
    if (idleMs < vitestMsMax) return;
    idleMs = 0;
    console.error(`Vitest made no progress for ${vitestMsMax / 1000} seconds, so it was ended.`);
    ending.push(endWithDescendants(vitest, graceMs));
  };
  /** @type {(stale: readonly Progress[], running: readonly { pid: number }[]) => void} */
  const endStale = (stale, running) => {
    for (const one of stale.filter(({ pid }) => running.some((other) => other.pid === pid))) {
      ended.add(one.file);
      console.error(`${describe(one)} made no progress for ${hangMsOf(one) / 1000} seconds, so its process was ended.`);
      ending.push(endWithDescendants(one.pid, graceMs));
    }
  };
  const timer = setInterval(look, lookMs);
  return {
    ended,
    /** @param {number} pid */
    started: (pid) => {
      vitest = pid;
    },
    stop: async () => {
      clearInterval(timer);
      await Promise.all(ending);
      // The built programs hide most of their variables, and keep TMPDIR.
      const started = [...processesWith(progressVariable, folder), ...processesWith("TMPDIR", temporary)];
      const left = await endProcesses([...new Map(started.map((one) => [one.pid, one])).values()], graceMs);
      if (left.length > 0) console.error(`Processes that tests had left behind were ended: ${left.length}.`);
    },
  };
}

/**
 * Ends a process, and then what it has started, which may take its time to clean up.
 * @param {number} pid
 * @param {number} graceMs
 */
function endWithDescendants(pid, graceMs) {
  const below = descendantsOf(pid);
  endProcess(pid);
  return endProcesses(below, graceMs);
}

/**
 * @param {string} folder
 * @returns {Progress[]}
 */
function readProgress(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    try {
      const writtenAt = statSync(path).mtimeMs;
      return [{ ...JSON.parse(readFileSync(path, "utf8")), pid: Number.parseInt(name, 10), writtenAt }];
    } catch {
      // It is being written.
      return [];
    }
  });
}

/** @param {Progress} progress */
function describe({ file, phase, tests }) {
  const path = relative(root, file);
  if (tests.length > 0) return `${path} (${tests.map((name) => JSON.stringify(name)).join(", ")})`;
  return phase === "tests" ? `${path} (outside of its tests)` : `${path} (${phase})`;
}

/**
 * A test that may take longer than others gets more time, unless a time is given.
 * @param {Progress} progress
 */
function hangMsOf({ timeoutMs }) {
  const ms = hangSeconds() * 1000;
  return process.env.SKEIN_TEST_HANG_SECONDS ? ms : Math.max(ms, timeoutMs + timeoutMsMore);
}

function hangSeconds() {
  const given = process.env.SKEIN_TEST_HANG_SECONDS;
  if (!given) return hangSecondsDefault;
  const seconds = Number(given);
  if (seconds > 0) return seconds;
  throw new SetupError(`SKEIN_TEST_HANG_SECONDS must be a number above 0, not ${JSON.stringify(given)}.`);
}

/**
 * @param {{ testResults: FileResult[], numPassedTests: number, numFailedTests: number } | null} report
 * @param {{ code: number, progress: string, ended: ReadonlySet<string> }} run
 * @returns {RunCounts}
 */
function countTests(report, { code, progress, ended }) {
  const files = report?.testResults ?? [];
  const broken = files.filter(isBroken).map(({ name }) => name);
  const failedFiles = new Set(files.filter(({ status }) => status === "failed").map(({ name }) => name));
  // Vitest reports such a file as passed, and its tests as skipped.
  const unfinished = readProgress(progress).filter(({ phase, file }) => phase !== "ending" && !failedFiles.has(file));
  for (const one of unfinished)
    if (!ended.has(one.file)) console.error(`${describe(one)} was not run to its end, as its process ended.`);
  const cut = new Set([...ended, ...unfinished.map(({ file }) => file)]);
  printLongest(files);
  const skipped = printSkipped(files.filter(({ name }) => !cut.has(name)));
  const failed = (report?.numFailedTests ?? 0) + new Set([...broken, ...cut]).size + skipped.silent;
  const failedTests = new Map(
    files.map((file) => [file.name, file.assertionResults.filter(isFailed).map((test) => test.fullName)]),
  );
  for (const [name, tests] of failedTests) if (tests.length === 0) failedTests.delete(name);
  const counts = { passed: report?.numPassedTests ?? 0, failed, skipped: skipped.count, failedTests };
  if (failed > 0) return counts;
  if (counts.passed === 0) return fail(counts, "This run executed no test, which counts as one failure.");
  if (code !== 0) return fail(counts, "Vitest failed outside of any test, which counts as one failure.");
  return counts;
}

/** @param {TestResult} test */
function isFailed({ status }) {
  return status === "failed";
}

/**
 * Whether a file failed without a failing test of its own, as one that does not load.
 * @param {FileResult} file
 */
function isBroken({ status, assertionResults }) {
  return status === "failed" && !assertionResults.some(isFailed);
}

/**
 * Prints which files took longest, to find out how to make the run faster.
 * @param {readonly FileResult[]} files
 */
function printLongest(files) {
  if (files.length <= longestShown) return;
  const seconds = (/** @type {FileResult} */ { startTime, endTime }) => Math.round((endTime - startTime) / 1000);
  const longest = files.toSorted((one, other) => seconds(other) - seconds(one)).slice(0, longestShown);
  console.log(`The ${longestShown} files that took longest, in seconds:`);
  for (const file of longest) console.log(`${String(seconds(file)).padStart(5)}  ${relative(root, file.name)}`);
}

/**
 * Prints how many tests were skipped for which reason, and returns how many were skipped with and without one.
 * @param {readonly FileResult[]} files
 */
function printSkipped(files) {
  const reasons = new Map();
  let silent = 0;
  let count = 0;
  for (const { status, fullName, meta } of files.flatMap((file) => file.assertionResults)) {
    if (status === "passed" || status === "failed") continue;
    count += 1;
    if (meta.skipReason === undefined) {
      console.error(`"${fullName}" was skipped without a reason, which counts as one failure.`);
      silent += 1;
    } else reasons.set(meta.skipReason, (reasons.get(meta.skipReason) ?? 0) + 1);
  }
  for (const [reason, number] of reasons) console.log(`${number} skipped because ${reason}.`);
  return { silent, count };
}

/**
 * @param {RunCounts} counts
 * @param {string} sentence
 * @returns {RunCounts}
 */
function fail(counts, sentence) {
  console.error(sentence);
  return { ...counts, failed: counts.failed + 1 };
}
