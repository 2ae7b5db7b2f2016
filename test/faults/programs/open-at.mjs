/**
 * Opens the store that an address names: a URL, and after a `#` what a URL cannot say: the schema in PostgreSQL, the
 * beginning of all keys in Redis, the durability of files.
 * @param {string} address
 * @returns {Promise<import("../../../dist/session/index.js").SessionStore>}
 */
export async function openAt(address) {
  const [url = "", detail] = address.split("#");
  if (url.startsWith("postgres:")) {
    const { openPostgresStore } = await import("../../../dist/stores/postgres/index.js");
    return openPostgresStore({ url, connectionsMax: 2, ...(detail !== undefined && { schema: detail }) });
  }
  if (url.startsWith("redis:")) {
    const { openRedisStore } = await import("../../../dist/stores/redis/index.js");
    return openRedisStore({ url, ...(detail !== undefined && { prefix: detail }) });
  }
  const { openStore } = await import("../../../dist/stores/open-store.js");
  return openStore(url, { durability: detail === "fsync" ? "fsync" : "flush" });
}
