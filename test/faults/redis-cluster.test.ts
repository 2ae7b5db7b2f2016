import { Cluster, Redis } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, redisMissing, startRedis } from "../../scripts/redis.mjs";
import { freePort } from "../../scripts/test-server.mjs";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openRedisStore, type RedisClient } from "../../src/stores/redis/index.ts";
import { skipReason, storeCases } from "../../src/testing/index.ts";
import { skipBecause } from "../skip.ts";
import { newPrefix, openClient, openStore, ownServerTest } from "./redis-support.ts";
import { refusalOf, until } from "./store-support.ts";

const NODES = 3;
const SLOTS = 16_384;
const missing = redisMissing();

const nodes: RedisServer[] = [];
const clients = new Map<string, { readonly client: RedisClient; close(): void }>();

describe("on a cluster of three servers", () => {
  beforeAll(async () => {
    if (missing !== null) return;
    await startCluster();
    await connectOfficial();
    await connectIoRedis();
  });

  afterAll(async () => {
    for (const { close } of clients.values()) close();
    await Promise.all(nodes.map((node) => node.stop()));
  });

  for (const name of ["redis", "ioredis"]) {
    describe(`with the cluster client of ${name}`, () => {
      for (const storeCase of storeCases) {
        test(storeCase.name, async (context) => {
          if (missing !== null) skipBecause(context, missing);
          const prefix = newPrefix();
          const handles: SessionStore[] = [];
          const reopen = async (): Promise<SessionStore> => {
            const store = await openRedisStore({ client: clientOf(name), prefix });
            handles.push(store);
            return store;
          };
          try {
            const given = { store: await reopen(), reopen };
            expect(skipReason(storeCase, given)).toBeNull();
            await storeCase.run(given);
          } finally {
            await Promise.all(handles.map((store) => store.close()));
          }
        });
      }
    });
  }

  ownServerTest("puts sessions on all of its servers", async () => {
    const store = await openStore({ client: clientOf("redis"), prefix: newPrefix() });
    for (let i = 0; i < 30; i++) await store.create(createHeader({ id: `s${i}` }));
    for (const node of nodes) expect(await (await openClient(node.url)).dbsize()).toBeGreaterThan(0);
    expect(await store.count()).toBe(30);
  });

  ownServerTest("refuses a client for one server with the reason", async () => {
    const refusals = await Promise.all(
      nodes.map(async (node) => {
        const store = await openRedisStore({ url: node.url, prefix: "one" }).catch((error: unknown) => error);
        return store instanceof Error ? store : refusalOf(useAll(store as SessionStore));
      }),
    );
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({
        code: "STORE_FAILED",
        message: expect.stringContaining("is one node of a cluster; pass a client made for the whole cluster"),
      });
    }
  });
});

async function useAll(store: SessionStore): Promise<void> {
  try {
    for (let i = 0; i < 30; i++) await store.create(createHeader({ id: `one-${i}` }));
  } finally {
    await store.close();
  }
}

function clientOf(name: string): RedisClient {
  return (clients.get(name) as { client: RedisClient }).client;
}

async function startCluster(): Promise<void> {
  const buses = await Promise.all(Array.from({ length: NODES }, freePort));
  for (const bus of buses) {
    const flags = ["--cluster-enabled", "yes", "--cluster-port", String(bus), "--cluster-node-timeout", "5000"];
    nodes.push(await startRedis(flags));
  }
  const [first, ...others] = nodes.map((node) => new Redis(node.url));
  for (const [index, admin] of [first, ...others].entries()) {
    const [start, end] = [index, index + 1].map((each) => Math.floor((each * SLOTS) / NODES));
    await admin?.call("CLUSTER", "ADDSLOTSRANGE", String(start), String((end as number) - 1));
  }
  for (const [index, bus] of buses.entries())
    if (index > 0) await first?.call("CLUSTER", "MEET", "127.0.0.1", String(nodes[index]?.port), String(bus));
  for (const admin of [first, ...others]) {
    await until(async () => {
      const info = String(await admin?.call("CLUSTER", "INFO"));
      return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${NODES}`);
    }, "the cluster");
    admin?.disconnect();
  }
}

async function connectOfficial(): Promise<void> {
  const { password } = new URL(nodes[0]?.url as string);
  const client = createCluster({ rootNodes: nodes.map(({ url }) => ({ url })), defaults: { password } });
  client.on("error", () => {});
  await client.connect();
  clients.set("redis", { client, close: () => client.destroy() });
}

async function connectIoRedis(): Promise<void> {
  const { password } = new URL(nodes[0]?.url as string);
  const client = new Cluster(
    nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
    { redisOptions: { password } },
  );
  client.on("error", () => {});
  await client.call("PING");
  clients.set("ioredis", { client, close: () => client.disconnect() });
}
