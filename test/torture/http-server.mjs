// Serves sessions of a SQLite file, with a slow agent, until SIGTERM; then it drains and ends. It reports its address,
// its state on request, and what was left after the drain. node --expose-gc http-server.mjs <path> <drain in ms>
import { subscribe } from "node:diagnostics_channel";
import { createAgent, SessionManager } from "skein";
import { createServer } from "skein/http";
import { offline } from "skein/offline";
import { openSqliteStore } from "skein/sqlite";

/**
 * The state of a server.
 * @typedef {object} Standing
 * @property {number} residentBytes after all garbage was collected
 * @property {number} heldBytes by JavaScript, likewise
 * @property {number} answered requests
 * @property {number} left requests whose client left before the end of the answer
 * @property {number} open requests that are being answered
 */

/**
 * The state of a server after the drain.
 * @typedef {object} Rest
 * @property {number} open requests that are still being answered
 * @property {number} cut requests whose answer the server itself ended before its end
 * @property {readonly string[]} failures internal errors of the server
 */

/** @typedef {{ response: import("node:http").ServerResponse, socket: import("node:net").Socket }} Started */

const modelDelayMs = 40;
const failuresMax = 20;
const unlimited = 1_000_000_000;
const [path = "", drainMs = "0"] = process.argv.slice(2);
const open = new Set();
/** @type {string[]} */
const failures = [];
let [answered, left, cut, draining] = [0, 0, 0, false];

subscribe("http.server.request.start", (message) => {
  const { response, socket } = /** @type {Started} */ (message);
  open.add(response);
  response.once("close", () => {
    open.delete(response);
    if (response.writableFinished) answered += 1;
    else if (socket.readableEnded || socket.errored !== null) left += 1;
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
    // Clients that connect during the drain get that answer.
    const isRefusal = status === 503 && draining;
    if (level === "error" && !isRefusal && failures.length < failuresMax)
      failures.push(`${method} ${route}: ${status} ${error}`);
  },
});
process.send?.(await server.listen());
process.on("message", () => process.send?.(standing()));
process.once("SIGTERM", async () => {
  draining = true;
  await server.close({ drainMs: Number(drainMs) });
  await manager[Symbol.asyncDispose]();
  await store.close();
  // Gives closed sockets one turn of the event loop to emit `close`.
  setImmediate(() => {
    process.send?.({ open: open.size, cut, failures });
    // The IPC channel is the only handle that may still keep the process alive.
    process.disconnect();
  });
});

/** @returns {Standing} */
function standing() {
  // The second collection frees what finalizers of the first one released.
  for (let times = 0; times < 2; times++) globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { residentBytes: rss, heldBytes: heapUsed + external, answered, left, open: open.size };
}
