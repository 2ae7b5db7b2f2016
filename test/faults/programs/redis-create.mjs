// Makes sessions of one user at a given time, at most so many, and prints the ids of those it was let make.
// node redis-create.mjs <url> <prefix> <tag> <sessions> <limit> <time>
import { createHeader } from "../../../dist/session/index.js";
import { openRedisStore } from "../../../dist/stores/redis/index.js";

const [url = "", prefix = "", tag = "", sessions = "0", limit = "0", time = "0"] = process.argv.slice(2);
const store = await openRedisStore({ url, prefix });
await new Promise((resolve) => setTimeout(resolve, Number(time) - Date.now()));
await Promise.all(
  Array.from({ length: Number(sessions) }, async (_, i) => {
    const header = createHeader({ id: `${tag}-${i}`, userId: "user:bob" });
    try {
      await store.create(header, { maxOpenPerUser: Number(limit) });
      console.log(header.id);
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code !== "CAPACITY") throw error;
    }
  }),
);
await store.close();
