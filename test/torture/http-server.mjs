// Serves sessions of a SQLite file, with an agent that takes a moment to answer, until SIGTERM; then it drains and ends
// by itself. It tells its parent where it listens, how it stands whenever it is asked, and what was left after the drain.
// node --expose-gc http-server.mjs <path> <drain in ms>
import { subscribe } from "node:diagnostics_channel";
import { createAgent } from "../../dist/agent/index.js";
import { createServer } from "../../dist/http/index.js";
import { SessionManager } from "../../dist/lifecycle/session-manager.js";
import { offline } from "../../dist/models/index.js";
import { openSqliteStore } from "../../dist/stores/sqlite/index.js";

/**
 * How a server stands.
 * @typedef {object} Standing
 * @property {number} residentBytes after all garbage was collected
 * @property {number} heldBytes by JavaScript, likewise
 * @property {number} answered requests
 * @property {number} cut requests whose client left before the end of the answer
 * @property {number} open requests that are being answered
 */

/**
 * What is left of a server when it has drained.
 * @typedef {object} Rest
 * @property {number} open requests that are still being answered
 * @property {number} unfinished requests whose answer was cut while it drained
 * @property {readonly string[]} failures what went wrong in the server itself
 */

const modelDelayMs = 40;
const failuresMax = 20;
const unlimited = 1_000_000_000;
const [path = "", drainMs = "0"] = process.argv.slice(2);
const open = new Set();
/** @type {string[]} */
const failures = [];
let [answered, cut, cutBeforeDrain] = [0, 0, -1];

subscribe("http.server.request.start", (message) => {
  const { response } = /** @type {{ response: import("node:http").ServerResponse }} */ (message);
  open.add(response);
  response.once("close", () => {
    open.delete(response);
    if (response.writableFinished) answered += 1;
    else cut += 1;
  });
});

const store = await openSqliteStore({ path });
const config = { maxSessionsPerUser: unlimited, maxBranchesPerSession: unlimited, maxTurnsPerSession: unlimited };
const manager = new SessionManager({ store, config });
const agent = createAgent({ name: "helper", prompt: "Be brief.", model: offline({ delayMs: modelDelayMs }) });
const server = await createServer({
  manager,
  agents: [agent],
  logger: ({ level, method, route, status, error }) => {
    if (level === "error" && failures.length < failuresMax) failures.push(`${method} ${route}: ${status} ${error}`);
  },
});
process.send?.(await server.listen());
process.on("message", () => process.send?.(standing()));
process.once("SIGTERM", async () => {
  cutBeforeDrain = cut;
  await server.close({ drainMs: Number(drainMs) });
  await manager[Symbol.asyncDispose]();
  await store.close();
  // A turn of the event loop, in which sockets that were closed say so.
  setImmediate(() => {
    process.send?.({ open: open.size, unfinished: cut - cutBeforeDrain, failures });
    // Nothing else may keep the process alive.
    process.disconnect();
  });
});

/** @returns {Standing} */
function standing() {
  // The second collection takes what finalizers of the first one let go of.
  for (let times = 0; times < 2; times++) globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { residentBytes: rss, heldBytes: heapUsed + external, answered, cut, open: open.size };
}
