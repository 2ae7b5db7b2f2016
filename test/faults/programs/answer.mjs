// Opens stores and calls their methods in order. Requests come over the channel to its parent: { method, args } is
// answered with { value }, { refused: <code> } or { failed: <error> }.
import { checkHeadIsFold } from "skein/testing";
import { openAt } from "./open-at.mjs";

/** @typedef {import("skein").SessionStore} SessionStore */

const TTL_MS = 10 * 60 * 1000;
/** @type {SessionStore | null} */
let store = null;
/** The leases that were taken here, by session. @type {Map<string, import("skein/store").Lease>} */
const leases = new Map();

/** Requests other than calls of the store's methods. @type {Record<string, (...args: any[]) => Promise<unknown>>} */
const methods = {
  async open(address) {
    await store?.close();
    leases.clear();
    store = await openAt(address);
  },
  async read(sessionId, options) {
    const entries = [];
    for await (const entry of opened().read(sessionId, options)) entries.push(entry);
    return entries;
  },
  async lease(sessionId, runId) {
    const lease = await opened().lease(sessionId, runId, TTL_MS);
    leases.set(sessionId, lease);
    return { runId, token: lease.token };
  },
  renew: async (sessionId) => leases.get(sessionId)?.renew(TTL_MS),
  release: async (sessionId) => leases.get(sessionId)?.release(),
  checkHeadIsFold: (sessionId) => checkHeadIsFold(opened(), sessionId),
};

process.on("message", async (/** @type {{ method: string, args: unknown[] }} */ { method, args }) => {
  const answer = await perform(method, args).then(
    (value) => ({ value }),
    ({ code, stack }) => (code === undefined ? { failed: stack } : { refused: code }),
  );
  if (process.connected) process.send?.(answer);
});
process.on("disconnect", () => store?.close().finally(() => process.exit()));

/**
 * @param {string} method
 * @param {unknown[]} args
 * @returns {Promise<unknown>}
 */
async function perform(method, args) {
  const own = methods[method];
  if (own !== undefined) return own(...args);
  const others = /** @type {Record<string, (...args: unknown[]) => Promise<unknown>>} */ (
    /** @type {unknown} */ (opened())
  );
  return others[method]?.(...args);
}

/** @returns {SessionStore} */
function opened() {
  if (store === null) throw new Error("No store was opened.");
  return store;
}
