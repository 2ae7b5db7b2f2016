import { expect, test } from "vitest";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import { createStore } from "./create-store.ts";
import { MemoryDriver } from "../memory/memory-driver.ts";

const message: EntryDraft = { type: "message", message: { role: "user", content: "hello" } };

/** A driver that several stores share, as processes share a database. `notify` wakes its subscribers. */
function sharedDriver(): { driver: StoreDriver; wakes: Set<() => void>; notify: () => void } {
  const memory = new MemoryDriver(() => new Date());
  const wakes = new Set<() => void>();
  const replaced: Partial<StoreDriver> = {
    capabilities: { ...memory.capabilities, shared: true },
    async subscribe(_sessionId, wake) {
      wakes.add(wake);
      return { close: () => void wakes.delete(wake) };
    },
  };
  const driver = new Proxy<StoreDriver>(memory, {
    get(target, key) {
      if (key in replaced) return Reflect.get(replaced, key);
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { driver, wakes, notify: () => [...wakes].forEach((wake) => void wake()) };
}

test("wakes a watcher when its driver notifies it of another process's append, without polling", async () => {
  const { driver, wakes, notify } = sharedDriver();
  const [here, elsewhere] = [createStore(driver), createStore(driver)];
  await elsewhere.create(createHeader({ id: "a" }));
  const watching = here.watch("a")[Symbol.asyncIterator]();
  const first = watching.next();
  await expect.poll(() => wakes.size).toBe(1);
  const { entries } = await elsewhere.append("a", [message]);
  notify();
  expect((await first).value).toEqual((entries as Entry[])[0]);
  await watching.return?.();
  expect(wakes.size).toBe(0);
});

test("closes its subscription if the session is missing, and when the store is closed", async () => {
  const { driver, wakes } = sharedDriver();
  const store = createStore(driver);
  await expect(store.watch("missing")[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: "SESSION_NOT_FOUND",
  });
  expect(wakes.size).toBe(0);
  await store.create(createHeader({ id: "a" }));
  const next = store.watch("a")[Symbol.asyncIterator]().next();
  await expect.poll(() => wakes.size).toBe(1);
  await store.close();
  expect((await next).done).toBe(true);
  expect(wakes.size).toBe(0);
});
