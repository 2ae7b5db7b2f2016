import { join } from "node:path";
import { parseArgs } from "node:util";
import { descendantsOf, endProcess } from "./processes.mjs";
import { main, root, run, SetupError } from "./run.mjs";
import { ensureBuild, ensurePackages, ensureRedis } from "./setup.mjs";

const usage = `Usage: npm run torture [-- --kind kind] [--store kind] [--minutes N] [--seed N] [--seeds N]
       npm run torture -- --kind fleet [--store kind] [--runs N] [--kills N] [--empty-queue]
       npm run torture -- --kind fleet [--store kind] --minutes N

Kills and disturbs processes that write to stores, and then checks that each store has kept what it acknowledged.

  --kind kind   only this kind; may be given several times (default: all, or seeds if a seed is given)
                  writers      kill -9 of a random one of several processes that write, every 100 ms
                  connections  the server closes a random connection every 100 ms
                  restarts     the server shuts down, aborts, or is killed with -9, and starts again
                  runs         kill -9 of a random one of several processes that recover runs, whose calls need approval
                  erase        kill -9 of processes that erase a person, until 50 kills
                  attachments  kill -9 of a random one of several processes that append, fork, sweep and erase images at
                               once; then looks for entries without their bytes, and for bytes that should not be there
                  budgets      kill -9 of processes with 64 runs of one user at once, which others recover; then compares
                               what the logs have with the user's budget and with the ledger
                  fleet        kill -9 and freezing of workers and servers that share a store and a queue; with --minutes also
                               restarts of those servers, closed connections, emptied queues, and members without a network
                  http         a server under mixed load, with many clients that disappear
                  seeds        random requests, whose results are compared with those of the memory store
  --store kind  only stores whose name begins so: jsonl, sqlite, postgres, redis (default: all)
  --minutes N   for how long on each store; seeds: on all of them (default: 0.5; http: 5; runs, attachments: until 200 kills;
                seeds: 10;
                fleet: until there were as many runs and kills as were asked for, an hour at most; its last runs have
                five more minutes at most, and each other step three; SIGTERM and SIGINT end everything in a minute)
  --seed N      the first seed (default: drawn)
  --seeds N     only so many seeds, whatever the time
  --runs N      fleet: so many runs at least (default: 1000)
  --kills N     fleet, attachments: so many kills at least (default: 200)
  --empty-queue  fleet: the queue is on a Redis of its own, which is emptied in the middle`;

const kinds = [
  "writers",
  "connections",
  "restarts",
  "runs",
  "erase",
  "attachments",
  "budgets",
  "fleet",
  "http",
  "seeds",
];
const seedsARound = 250;
/** How long after a signal everything is ended that has not come to its end by itself. */
const stopMsMax = 60_000;

/** @typedef {{ kinds: readonly string[], store: string, minutes: number | null, first: number, seeds: number | null, fleet: { runsMin: number, strikesMin: number, harm: import("../test/torture/fleet-trial.mjs").Harm } }} Options */

/** @typedef {{ durationMs: number, signal: AbortSignal, report: (sentence: string) => void }} Limits */

await main(async () => {
  const options = readOptions();
  if (options === null) return 0;
  await ensurePackages();
  await ensureBuild();
  await ensureRedis();
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop(stopping));
  const kept = await runTrials(options, stopping.signal);
  if (stopping.signal.aborted) throw new SetupError("Stopped before the end.");
  const same = !options.kinds.includes("seeds") || (await runSeeds(options));
  return kept && same ? 0 : 1;
});
// Without it, Node 20 may wait endlessly for the handle of a socket whose server was killed, in a busy loop.
process.exit();

/**
 * Ends the trial, which has a minute for that: then it is ended with all that it has started.
 * @param {AbortController} stopping
 */
function stop(stopping) {
  stopping.abort();
  const end = () => {
    console.error(`The trial did not stop within ${stopMsMax / 1000} seconds, so it was ended.`);
    for (const { pid } of descendantsOf(process.pid)) endProcess(pid);
    process.exit(1);
  };
  setTimeout(end, stopMsMax).unref();
}

/**
 * Prints a table with the result of each trial; resolves to whether every promise was kept.
 * @param {Options} options
 * @param {AbortSignal} signal
 */
async function runTrials(options, signal) {
  // Imported here, as dist/ may have been built by this process.
  const { trials } = await import("../test/torture/trials.mjs");
  const { runTrial } = await import("../test/torture/run-trial.mjs");
  const { runHttpTrial } = await import("../test/torture/http-trial.mjs");
  const { fleetPlaces, fleetStores, runFleetTrial } = await import("../test/torture/fleet-trial.mjs");
  const { eraseStores, runEraseTrial } = await import("../test/torture/erase-trial.mjs");
  const { attachmentStores, runAttachmentTrial } = await import("../test/torture/attachment-trial.mjs");
  const { budgetStores, runBudgetTrial } = await import("../test/torture/budget-trial.mjs");
  const { runRunsTrial, runStores } = await import("../test/torture/runs-trial.mjs");
  const missingOf = (/** @type {string} */ store) =>
    trials.find((trial) => trial.store === store)?.missing ?? (() => null);
  const offered = [
    ...trials.map((trial) => ({
      ...trial,
      minutes: 0.5,
      run: (/** @type {Limits} */ limits) => runTrial(trial, limits),
    })),
    ...runStores.map((store) => ({
      kind: "runs",
      store,
      missing: missingOf(store),
      minutes: 10,
      run: (/** @type {Limits} */ limits) => runRunsTrial(store, { ...limits, killsMax: 200 }),
    })),
    ...eraseStores.map((store) => ({
      kind: "erase",
      store,
      missing: missingOf(store),
      minutes: 10,
      run: (/** @type {Limits} */ limits) => runEraseTrial(store, limits),
    })),
    ...attachmentStores.map((store) => ({
      kind: "attachments",
      store,
      missing: missingOf(store.split(" ")[0] ?? store),
      minutes: 10,
      run: (/** @type {Limits} */ limits) =>
        runAttachmentTrial(store, { ...limits, killsMax: options.fleet.strikesMin || 200 }),
    })),
    ...budgetStores.map((store) => ({
      kind: "budgets",
      store,
      missing: missingOf(store),
      minutes: 1,
      run: (/** @type {Limits} */ limits) => runBudgetTrial(store, limits),
    })),
    ...(options.minutes === null ? fleetStores : fleetPlaces).map((store) => ({
      kind: "fleet",
      store,
      missing: missingOf(store.endsWith("redis") ? "redis" : store),
      minutes: 60,
      run: (/** @type {Limits} */ limits) => runFleetTrial(store, { ...limits, ...options.fleet }),
    })),
    { kind: "http", store: "sqlite", missing: () => null, minutes: 5, run: runHttpTrial },
  ];
  const chosen = offered.filter(({ kind, store }) => options.kinds.includes(kind) && store.startsWith(options.store));
  if (chosen.length === 0 && !options.kinds.includes("seeds"))
    throw new SetupError(`There is no such trial for a store that begins with "${options.store}".\n\n${usage}`);
  const rows = [];
  let kept = true;
  for (const trial of chosen) {
    if (signal.aborted) break;
    const name = `${trial.kind} on ${trial.store}`;
    const missing = trial.missing();
    if (missing !== null) {
      console.log(`${name}: skipped because ${missing}.`);
      continue;
    }
    const report = (/** @type {string} */ sentence) => console.log(`${name}: ${sentence}`);
    const { violations, ...outcome } = await trial.run({
      durationMs: (options.minutes ?? trial.minutes) * 60_000,
      signal,
      report,
    });
    for (const violation of violations) console.error(`${name}: VIOLATION ${violation}`);
    rows.push({ trial: name, ...outcome, violations: violations.length });
    kept &&= violations.length === 0;
  }
  if (rows.length > 0) console.table(rows);
  return kept;
}

/**
 * Runs seeds until the time is over or one has failed; resolves to whether none has failed.
 * @param {Options} options
 */
async function runSeeds({ store, minutes, first: begin, seeds }) {
  const end = Date.now() + (minutes ?? 10) * 60_000;
  const limit = seeds === null ? Number.MAX_SAFE_INTEGER : begin + seeds;
  let first = begin;
  do {
    const last = Math.min(first + seedsARound, limit) - 1;
    console.log(`Seeds ${first} to ${last}${store === "" ? "" : ` on ${store}`}.`);
    const env = { SKEIN_SIMULATION_SEEDS: `${first}-${last}`, ...(store !== "" && { SKEIN_SIMULATION_STORE: store }) };
    // The tests start the servers that a store needs. A store's name may be longer than its kind, which names the test
    // file.
    const tests = `test/simulation/${store.split(" ")[0]}`;
    const code = await run(process.execPath, [join(root, "scripts/test.mjs"), tests], { env });
    if (code !== 0) {
      console.error("A seed failed; the message above names it and says how to run it again.");
      return false;
    }
    first = last + 1;
    console.log(`${first - begin} seeds done, none failed.`);
  } while (first < limit && (seeds !== null || Date.now() < end));
  return true;
}

/** @returns {Options | null} */
function readOptions() {
  const { values } = parse();
  if (values.help) {
    console.log(usage);
    return null;
  }
  const chosen = values.kind ?? (values.seed === undefined && values.seeds === undefined ? kinds : ["seeds"]);
  const unknown = chosen.find((kind) => !kinds.includes(kind));
  if (unknown !== undefined) throw new SetupError(`--kind is "${unknown}"; it must be one of ${kinds.join(", ")}.`);
  return {
    kinds: chosen,
    store: values.store ?? "",
    minutes: values.minutes === undefined ? null : numberOf(values.minutes, "minutes"),
    first: values.seed === undefined ? 1 + Math.floor(Math.random() * 1e9) : numberOf(values.seed, "seed"),
    seeds: values.seeds === undefined ? null : numberOf(values.seeds, "seeds"),
    fleet:
      values.minutes === undefined
        ? {
            runsMin: numberOf(values.runs, "runs"),
            strikesMin: numberOf(values.kills, "kills"),
            harm: { to: "random", emptyQueue: values["empty-queue"] },
          }
        : { runsMin: Number.MAX_SAFE_INTEGER, strikesMin: 0, harm: { to: "servers" } },
  };
}

function parse() {
  try {
    return parseArgs({
      options: {
        kind: { type: "string", multiple: true },
        minutes: { type: "string" },
        store: { type: "string" },
        seed: { type: "string" },
        seeds: { type: "string" },
        runs: { type: "string", default: "1000" },
        kills: { type: "string", default: "200" },
        "empty-queue": { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    throw new SetupError(`${/** @type {Error} */ (error).message}\n\n${usage}`);
  }
}

/**
 * @param {string} text
 * @param {string} name
 */
function numberOf(text, name) {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number) || number <= 0)
    throw new SetupError(`--${name} is "${text}"; it must be a number above 0.`);
  return name === "minutes" ? number : Math.floor(number);
}
