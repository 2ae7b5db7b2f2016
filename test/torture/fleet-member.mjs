// A worker or a server of a fleet, until SIGTERM; then it ends in order.
// node fleet-member.mjs worker|server <address of the store> <URL of the queue> <settings as JSON>
// Prints "ready <url or nothing>" once, "lag <ms>" for how late its event loop was at most, "at <run>" for every step of a run here, "end" when it has ended in order, and for
// what went wrong outside of any run "wrong <sentence>".
import { writeSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createServer } from "skein/http";
import { SessionManager } from "skein";
import { bullmqQueue, startWorker } from "skein/workers";
import { countingAgent } from "../faults/programs/counting-agent.mjs";
import { openAt } from "../faults/programs/open-at.mjs";

/**
 * How the members of a fleet are set up.
 * @typedef {object} Settings
 * @property {string} effects the file of effects
 * @property {number} rounds
 * @property {number} leaseMs
 * @property {number} sweepMs
 */

const drainMs = 10_000;
/** All runs are requested by one user here, and a worker may have to take over those of several workers. */
const maxRunsPerUser = 100;
/** A long trial has more turns in a session than the default limit. */
const maxTurnsPerSession = 1_000_000;
const [role = "", address = "", queueUrl = "", given = "{}"] = process.argv.slice(2);
const { effects, rounds, leaseMs, sweepMs } = /** @type {Settings} */ (JSON.parse(given));
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);

const store = await openAt(address);
const manager = new SessionManager({ store, config: { maxTurnsPerSession } });
const queue = bullmqQueue({ url: queueUrl });
const agents = [countingAgent({ effects, rounds, pauseMs: 40, at: (runId) => print(`at ${runId}`) })];
const member = await (role === "worker" ? work() : serve());
print(`ready ${member.url}`);
// Measured because a takeover may be late only because the machine is busy.
const lag = monitorEventLoopDelay({ resolution: 20 });
lag.enable();
setInterval(() => {
  print(`lag ${Math.round(lag.max / 1e6)}`);
  lag.reset();
}, 500).unref();
process.once("SIGTERM", async () => {
  await member.close();
  await queue.close();
  await store.close();
  print("end");
});

async function work() {
  const onError = (/** @type {unknown} */ error) => print(`wrong ${oneLine(error)}`);
  const init = { manager, agents, queue, leaseMs, sweepMs, park: { afterMs: 20 }, maxRunsPerUser, onError };
  const worker = await startWorker(init);
  return { url: "", close: () => worker.close({ drainMs }) };
}

async function serve() {
  const server = await createServer({
    manager,
    agents,
    queue,
    limits: { streamsPerUser: 1000 },
    logger: ({ level, method, route, status, error }) => {
      // Clients that connect during the drain get that answer.
      if (level === "error" && status !== 503) print(`wrong ${method} ${route}: ${status} ${oneLine(error)}`);
    },
  });
  return { url: await server.listen(), close: () => server.close({ drainMs }) };
}

/** @param {unknown} error */
function oneLine(error) {
  return String(error instanceof Error ? error.stack : error).replaceAll(/\s+/g, " ");
}
