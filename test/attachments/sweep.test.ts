import { expect, test } from "vitest";
import { createHeader, SessionManager } from "../../src/index.ts";
import type { SessionListing } from "../../src/session/store-driver.ts";
import { createStore } from "../../src/stores/complete/create-store.ts";
import { MemoryDriver } from "../../src/stores/memory/memory-driver.ts";
import { holds, nameOf, pictured, sampleBytes } from "../../src/testing/store/blob-cases.ts";
import { user } from "../../src/testing/store/drafts.ts";

const image = sampleBytes(1);

/** More sessions than a page of a listing has. */
const OTHERS = 1001;

/** A driver whose clock moves a second with each call, and whose listings run a task before and after each page. */
function drive(around: { before?(): Promise<void>; after?(page: number): Promise<void> }) {
  let now = Date.parse("2026-01-02T03:04:05.678Z");
  const driver = new MemoryDriver(() => new Date((now += 1000)));
  const { listing } = driver;
  let pages = 0;
  const list: SessionListing["list"] = async (query, limit, position) => {
    if (query.deleted === true) return listing.list(query, limit, position);
    if (position === null) pages = 0;
    if (position === null) await around.before?.();
    const found = await listing.list(query, limit, position);
    await around.after?.(++pages);
    return found;
  };
  const observed: SessionListing = {
    list,
    count: (query) => listing.count(query),
    idleSince: (before, limit) => listing.idleSince(before, limit),
  };
  Object.defineProperty(driver, "listing", { value: observed });
  return driver;
}

test("a sweep keeps the blobs of a session that an append moves to a page of the listing that was read already", async () => {
  let isBusy = false;
  const driver = drive({
    // Everybody else is active, and then the session with the picture is, after each first page.
    before: async () => {
      if (isBusy) for (let number = 0; number < OTHERS; number++) await store.append(`o${number}`, [user("Hi.")]);
    },
    after: async (page) => {
      if (isBusy && page === 1) await store.append("a", [user("And?")]);
    },
  });
  await using store = createStore(driver);
  await store.create(createHeader({ id: "a" }), { entries: [pictured(image)] });
  for (let number = 0; number < OTHERS; number++) await store.create(createHeader({ id: `o${number}` }));
  isBusy = true;
  expect(await store.sweepBlobs({ graceMs: 0 })).toMatchObject({ blobs: 1, removed: 0 });
  await holds(store, "a", image);
});

test("a sweep keeps the blobs of a fork that is made of a session before that one is purged and its log is read", async () => {
  let isForked = false;
  const driver = drive({
    after: async () => {
      if (isForked) return;
      isForked = true;
      await store.fork("a", createHeader({ id: "fork" }));
      await store.delete("a");
      await store.purge({ sessionId: "a" });
    },
  });
  await using store = createStore(driver);
  await store.create(createHeader({ id: "a" }), { entries: [pictured(image)] });
  expect(await store.sweepBlobs({ graceMs: 0 })).toMatchObject({ blobs: 1, removed: 0 });
  await holds(store, "fork", image);
});

test("erasing a user with pictures in many sessions waits once for appends, and lists the sessions once", async () => {
  const driver = new MemoryDriver(() => new Date());
  await using store = createStore(driver);
  const manager = new SessionManager({ store });
  for (let number = 0; number < 40; number++)
    await store.create(createHeader({ id: `s${number}`, userId: "ada" }), { entries: [pictured(image)] });
  await store.create(createHeader({ id: "bob", userId: "bob" }), { entries: [pictured(image)] });
  let sweeps = 0;
  const sweep = store.sweepBlobs.bind(store);
  store.sweepBlobs = (options) => {
    sweeps += 1;
    return sweep(options);
  };
  expect(await manager.erase({ userId: "ada" })).toMatchObject({ sessions: 40, blobs: 40, notCovered: [] });
  expect(sweeps).toBe(1);
  expect(await store.blob("s1", nameOf(image))).toBeNull();
  await holds(store, "bob", image);
});

test("the scopes of a sweep must be ids of sessions", async () => {
  await using store = createStore(new MemoryDriver(() => new Date()));
  await expect(store.sweepBlobs({ scope: "../a" })).rejects.toMatchObject({ code: "INVALID_ID" });
  await expect(store.sweepBlobs({ scope: ["a", "../b"] })).rejects.toMatchObject({ code: "INVALID_ID" });
});
