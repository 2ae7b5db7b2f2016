import { randomUUID } from "node:crypto";
import { createClient } from "redis";
import { openRedisStore } from "skein/redis";
import type { BareClient, BenchServer } from "./bench-server.ts";

const KEYS_AT_ONCE = 1000;

/** A Redis server, a client with default settings, and one with the settings of the store's own client. */
export async function openRedisServer(url: string): Promise<BenchServer> {
  const usual = await connect({ url });
  const plain = await connect({ url, disableOfflineQueue: true, commandOptions: { timeout: 0 } });
  const prefix = `skein-bench-${randomUUID().slice(0, 8)}`;
  const pusher = (label: string, client: Client): BareClient => ({
    label,
    write: ({ session, body }) => client.rPush(`${prefix}:bare:${session}`, body),
  });
  return {
    kind: "redis",
    bares: [pusher("bare `RPUSH`", usual), pusher("bare `RPUSH` without a timeout for each command", plain)],
    openStore: (name) => openRedisStore({ url, prefix: `${prefix}:${name}` }),
    async [Symbol.asyncDispose]() {
      for await (const keys of usual.scanIterator({ MATCH: `${prefix}:*`, COUNT: KEYS_AT_ONCE })) {
        if (keys.length > 0) await usual.unlink(keys);
      }
      await Promise.all([usual.close(), plain.close()]);
    },
  };
}

type Client = Awaited<ReturnType<typeof connect>>;

async function connect(options: Parameters<typeof createClient>[0]) {
  const client = createClient(options);
  client.on("error", () => {});
  await client.connect();
  return client;
}
