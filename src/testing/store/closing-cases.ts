import assert from "node:assert/strict";
import { EMPTY_PATH } from "../../session/log/fold.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import type { StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { collect, idsOf, refuses } from "./store-checks.ts";
import { user } from "./drafts.ts";

type Method = Exclude<keyof SessionStore, "capabilities" | "close" | typeof Symbol.asyncDispose>;

const TIME = "2024-01-01T00:00:00.000Z";
const checkpoint = {
  id: "c",
  sessionId: "a",
  version: 0,
  leafId: null,
  createdAt: TIME,
  parentCheckpointId: null,
  metadata: {},
};

/** A valid call of every method. The type makes a missing method a compile error. */
const calls: Record<Method, (store: SessionStore) => Promise<unknown>> = {
  create: (store) => store.create(createHeader()),
  append: (store) => store.append("a", [user("x")]),
  head: (store) => store.head("a"),
  heads: (store) => store.heads(["a", "b"]),
  read: (store) => collect(store.read("a")),
  readJson: (store) => store.readJson("a"),
  getEntry: (store) => store.getEntry("a", "1"),
  blob: (store) => store.blob("a", "sha256:"),
  sweepBlobs: (store) => store.sweepBlobs(),
  putBlob: (store) => store.putBlob("a", new Uint8Array(1)),
  path: (store) => store.path("a", "1"),
  settings: (store) => store.settings("a", EMPTY_PATH),
  fork: (store) => store.fork("a", createHeader()),
  list: (store) => store.list(),
  count: (store) => store.count(),
  search: (store) => store.search("one"),
  delete: (store) => store.delete("a"),
  undelete: (store) => store.undelete("a"),
  purge: (store) => store.purge(TIME),
  saveCheckpoint: (store) => store.saveCheckpoint(checkpoint),
  loadCheckpoint: (store) => store.loadCheckpoint("c"),
  listCheckpoints: (store) => store.listCheckpoints("a"),
  deleteCheckpoint: (store) => store.deleteCheckpoint("c"),
  listExpired: (store) => store.listExpired(TIME, 1),
  watch: (store) => collect(store.watch("a", { after: -1 })),
  lease: (store) => store.lease("a", "run", 1000),
  leaseOf: (store) => store.leaseOf("a"),
  aggregate: (store) => store.aggregate({ groupBy: [] }),
  ping: (store) => store.ping(),
  eraser: async (store) => store.eraser,
  ledger: async (store) => store.ledger,
};

/** Cases: ping, capabilities and closing. */
export const closingCases: readonly StoreCase[] = [
  {
    name: "answers a ping while it is open",
    async run({ store }) {
      assert.equal(await store.ping(), undefined);
    },
  },
  {
    name: "declares its capabilities",
    async run({ store }) {
      const { durable, shared, forkByReference, search, watch, lease } = store.capabilities;
      for (const flag of [durable, shared, forkByReference]) assert.equal(typeof flag, "boolean");
      const words = [
        ["index", "scan"],
        ["push", "poll"],
        ["shared", "process"],
      ];
      for (const [index, word] of [search, watch, lease].entries()) assert.ok(words[index]?.includes(word), word);
      assert.ok(lease === "process" || shared, "a store whose leases are shared must be shared itself");
      assert.ok(Object.isFrozen(store.capabilities));
    },
  },
  ...Object.entries(calls).map(
    ([method, call]): StoreCase => ({
      name: `refuses ${method} after close`,
      async run({ store }) {
        await makeThree(store);
        await store.close();
        await refuses(() => call(store), "STORE_CLOSED");
      },
    }),
  ),
  {
    name: "after close, refuses invalid calls and empty appends with STORE_CLOSED too",
    async run({ store }) {
      await store.close();
      await refuses(store.append("../x", [null as never]), "STORE_CLOSED");
      await refuses(store.append("a", []), "STORE_CLOSED");
      await refuses(collect(store.read("../x")), "STORE_CLOSED");
    },
  },
  {
    name: "can be closed and disposed several times",
    async run({ store }) {
      await makeThree(store);
      await Promise.all([store.close(), store.close()]);
      await store.close();
      await store[Symbol.asyncDispose]();
      await refuses(store.ping(), "STORE_CLOSED");
    },
  },
  {
    name: "closing it makes the next step of a running read fail",
    async run({ store }) {
      await makeThree(store);
      const reading = store.read("a")[Symbol.asyncIterator]();
      assert.equal((await reading.next()).done, false);
      await store.close();
      await refuses(reading.next(), "STORE_CLOSED");
      await reading.return?.();
    },
  },
  {
    name: "after close, refuses to renew a lease, and allows to release it",
    async run({ store }) {
      await makeThree(store);
      const lease = await store.lease("a", "run", 1000);
      await store.close();
      await refuses(lease.renew(), "STORE_CLOSED");
      await lease.release();
    },
  },
  {
    name: "can be disposed during appends, and completes or refuses each of them",
    async run({ store }) {
      await makeThree(store);
      const appends = Array.from({ length: 10 }, (_, i) => store.append("a", [user(`${i}`)]));
      const results = Promise.allSettled(appends);
      await store.close();
      for (const result of await results) {
        if (result.status === "rejected") await refuses(Promise.reject(result.reason), "STORE_CLOSED");
      }
      await refuses(idsOf(store, "a"), "STORE_CLOSED");
    },
  },
];
