import { describe, expect, test } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import type { Entry } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import type { AppendResult, SessionStore } from "../../session/store.ts";
import { skipReason, storeCases } from "../../testing/index.ts";
import { createStore } from "./create-store.ts";
import { MemoryDriver } from "../memory/memory-driver.ts";

const message = { type: "message", message: { role: "user", content: "hello" } } as const;

/** A driver that forwards to another one, with some members replaced. */
function driverOn(driver: StoreDriver, replaced: Partial<StoreDriver> = {}): StoreDriver {
  return new Proxy(driver, {
    get(target, key) {
      if (key in replaced) return Reflect.get(replaced, key);
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function memoryDriver(): MemoryDriver {
  return new MemoryDriver(() => new Date());
}

async function storeWithSession(driver: StoreDriver): Promise<SessionStore> {
  const store = createStore(driver);
  await store.create(createHeader({ id: "a" }));
  return store;
}

describe("a store made from a driver that several processes share", () => {
  for (const storeCase of storeCases.filter(({ needs }) => needs !== undefined)) {
    test(storeCase.name, async (running) => {
      const memory = memoryDriver();
      const capabilities = { ...memory.capabilities, durable: true, shared: true, watch: "poll" } as const;
      const open = (): SessionStore => createStore(driverOn(memory, { capabilities }));
      const context = { store: open(), reopen: async () => open() };
      const reason = skipReason(storeCase, context);
      if (reason !== null) skipBecause(running, reason);
      await storeCase.run(context);
      await context.store.close();
    });
  }
});

test("append returns the driver's own promise", async () => {
  const appending = new Promise<AppendResult>(() => {});
  const store = await storeWithSession(driverOn(memoryDriver(), { append: () => appending }));
  expect(store.append("a", [message])).toBe(appending);
});

test("append rejects with the driver's error, thrown or rejected", async () => {
  const failure = new Error("the disk is full");
  const rejecting = createStore(driverOn(memoryDriver(), { append: () => Promise.reject(failure) }));
  await expect(rejecting.append("a", [message])).rejects.toBe(failure);
  const throwing = createStore(
    driverOn(memoryDriver(), {
      append: () => {
        throw failure;
      },
    }),
  );
  await expect(throwing.append("a", [message])).rejects.toBe(failure);
});

test("reports search, watch and ledger as the store provides them, not as the driver declares them", () => {
  const memory = memoryDriver();
  const claimed = { ...memory.capabilities, search: "index", watch: "poll" } as const;
  const without = createStore(driverOn(memory, { capabilities: claimed }));
  expect(without.capabilities).toMatchObject({ search: "scan", watch: "push" });
  const native = { capabilities: { ...claimed, shared: true }, search: async () => [] };
  expect(createStore(driverOn(memory, native)).capabilities).toEqual({
    ...native.capabilities,
    ledger: true,
    blobs: true,
  });
});

test("refuses the ledger of a driver that has none", async () => {
  const store = createStore(driverOn(memoryDriver(), { ledger: undefined } as never));
  expect(store.capabilities.ledger).toBe(false);
  expect(() => store.ledger).toThrow(expect.objectContaining({ code: "NOT_SUPPORTED" }));
});

test("passes the parsed terms, the filter and the limit to a driver that can search", async () => {
  const asked: unknown[] = [];
  const store = createStore(
    driverOn(memoryDriver(), {
      search: async (...args) => {
        asked.push(args);
        return [];
      },
    }),
  );
  await store.search("Two words", { userId: "u", limit: 7 });
  await store.search("one");
  const terms = (...texts: string[]): unknown[] => texts.map((text) => ({ type: "text", text }));
  expect(asked).toEqual([
    [terms("two", "words"), { userId: "u", limit: 7 }],
    [terms("one"), { limit: 100 }],
  ]);
});

test("searches and aggregates more sessions than fit on one page", async () => {
  const store = createStore(memoryDriver());
  for (let i = 0; i < 1005; i++) {
    await store.create(createHeader({ id: `s${i}`, createdAt: "2024-01-01T00:00:00.000Z" }), { entries: [message] });
  }
  expect(await store.aggregate({ groupBy: [] })).toMatchObject([{ sessions: 1005, messages: 1005 }]);
  await store.append("s500", [
    {
      type: "message",
      message: { role: "user", content: "needle", metadata: {} },
      timestamp: "2001-01-01T00:00:00.000Z",
    },
  ]);
  expect((await store.search("needle")).map(({ head }) => head.header.id)).toEqual(["s500"]);
  expect((await store.list({ limit: 1000 })).items).toHaveLength(1000);
});

test("does not call the driver after it was closed, even during a search", async () => {
  const memory = memoryDriver();
  let closed = false;
  const calls: string[] = [];
  const watched = new Proxy(memory, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (closed) calls.push(String(key));
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  const store = createStore(watched);
  for (const id of ["a", "b", "c"]) await store.create(createHeader({ id }), { entries: [message] });
  const begun = [store.search("hello"), store.aggregate({ groupBy: [] }), store.lease("a", "run", 1000)];
  const watching = store.watch("a")[Symbol.asyncIterator]().next();
  const closing = store.close();
  closed = true;
  await closing;
  for (const result of await Promise.allSettled(begun))
    expect(result).toMatchObject({ reason: { code: "STORE_CLOSED" } });
  expect((await watching).done).toBe(true);
  expect(calls).toEqual([]);
});

test("closes the driver's iterator if the store is closed during a read", async () => {
  let released = false;
  async function* read(): AsyncGenerator<Entry> {
    try {
      for (;;) yield { type: "session_info", name: "", id: "1", parentId: null, timestamp: "", seq: 0 };
    } finally {
      released = true;
    }
  }
  const store = createStore(driverOn(memoryDriver(), { read }));
  const reading = store.read("a")[Symbol.asyncIterator]();
  await reading.next();
  await store.close();
  await expect(reading.next()).rejects.toMatchObject({ code: "STORE_CLOSED" });
  expect(released).toBe(true);
});

test("every call of close rejects if the driver cannot close", async () => {
  const store = createStore(driverOn(memoryDriver(), { close: () => Promise.reject(new Error("stuck")) }));
  await expect(store.close()).rejects.toThrow("stuck");
  await expect(store.close()).rejects.toThrow("stuck");
  await expect(store.ping()).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test("a watch yields every entry appended after its call, even if reading the head is slow", async () => {
  const memory = memoryDriver();
  let slow = false;
  const head = async (id: string) => {
    if (slow) await new Promise((resolve) => setTimeout(resolve, 20));
    return memory.head(id);
  };
  const store = await storeWithSession(driverOn(memory, { head }));
  slow = true;
  const next = store.watch("a")[Symbol.asyncIterator]().next();
  const { entries } = await store.append("a", [message]);
  expect((await next).value).toEqual(entries[0]);
});

test.for([1, 2])("a watch ends without an error if the store is closed during read %i of its head", async (read) => {
  const memory = memoryDriver();
  let refuse: (error: Error) => void = () => {};
  const pending = new Promise<never>((_, reject) => {
    refuse = reject;
  });
  let calls = 0;
  const head: StoreDriver["head"] = (id) => (++calls === read ? pending : memory.head(id));
  const store = await storeWithSession(driverOn(memory, { head }));
  const next = store.watch("a")[Symbol.asyncIterator]().next();
  await expect.poll(() => calls).toBe(read);
  await store.close();
  refuse(new Error("the connection is closed"));
  expect((await next).done).toBe(true);
});

test("does not call the driver's leases after it was closed", async () => {
  const info = { runId: "run", token: 1, untilMs: 0 };
  const leases = { acquire: async () => info, renew: fail, release: fail, current: fail };
  const store = await storeWithSession(driverOn(memoryDriver(), { leases }));
  const lease = await store.lease("a", "run", 1000);
  await store.close();
  await lease.release();
  await expect(lease.renew()).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test("a watch rejects with the error of a failed read", async () => {
  const memory = memoryDriver();
  let broken = false;
  const head: StoreDriver["head"] = async (id) => {
    if (broken) throw new Error("the connection is lost");
    return memory.head(id);
  };
  const store = await storeWithSession(driverOn(memory, { head }));
  const watcher = store.watch("a", { after: -1 })[Symbol.asyncIterator]();
  const next = watcher.next();
  await new Promise((resolve) => setTimeout(resolve, 5));
  broken = true;
  await store.append("a", [message]);
  await expect(next).rejects.toThrow("the connection is lost");
});

test("leases expire by the driver's clock", async () => {
  let now = Date.parse("2024-01-01T00:00:00.000Z");
  const store = createStore(new MemoryDriver(() => new Date(now)));
  await store.create(createHeader({ id: "a" }));
  const lease = await store.lease("a", "one", 1000);
  expect(lease.expiresAt).toBe("2024-01-01T00:00:01.000Z");
  now += 999;
  await expect(store.lease("a", "two", 1000)).rejects.toMatchObject({ code: "SESSION_BUSY", holder: "run one" });
  await lease.renew();
  expect(lease.expiresAt).toBe("2024-01-01T00:00:01.999Z");
  now += 1000;
  expect(await store.leaseOf("a")).toBeNull();
  await expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect((await store.lease("a", "two", 1000)).token).toBe(2);
});

async function fail(): Promise<never> {
  throw new Error("not to be called");
}
