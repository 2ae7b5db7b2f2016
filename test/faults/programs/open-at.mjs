/**
 * Opens the store that an address names: a URL, and after a `#` the options that a URL cannot hold: the schema in PostgreSQL, the
 * beginning of all keys in Redis, the durability of files.
 * @param {string} address
 * @returns {Promise<import("skein").SessionStore>}
 */
export async function openAt(address) {
  const [url = "", detail] = address.split("#");
  if (url.startsWith("postgres:")) {
    const { openPostgresStore } = await import("skein/postgres");
    return openPostgresStore({ url, connectionsMax: 2, ...(detail !== undefined && { schema: detail }) });
  }
  if (url.startsWith("redis:")) {
    const { openRedisStore } = await import("skein/redis");
    return openRedisStore({ url, ...(detail !== undefined && { prefix: detail }) });
  }
  const { openStore } = await import("skein");
  return openStore(url, { durability: detail === "fsync" ? "fsync" : "flush" });
}
