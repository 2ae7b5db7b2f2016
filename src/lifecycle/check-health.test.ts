import { expect, test } from "vitest";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionManager } from "./session-manager.ts";

test("is healthy while the store responds, and gives the reason when it does not", async () => {
  const store = openMemoryStore();
  const manager = new SessionManager({ store });
  expect(await manager.health()).toMatchObject({ healthy: true, reason: null });
  await store.close();
  expect(await manager.health()).toMatchObject({ healthy: false, reason: expect.stringContaining("closed") });
});

test("does not wait for a hanging store longer than the timeout", async () => {
  const store = Object.assign(openMemoryStore(), { ping: () => new Promise<void>(() => {}) });
  const manager = new SessionManager({ store });
  expect(await manager.health({ timeoutMs: 10 })).toMatchObject({
    healthy: false,
    reason: "The store did not answer within 10 ms.",
  });
});

test("refuses an invalid delay of a timer", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  for (const timeoutMs of [0, -1, Number.NaN, 2 ** 31, "5"]) {
    const options = { timeoutMs: timeoutMs as number };
    await expect(manager.health(options)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(manager.settled(options)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  }
});

test("refuses to be created without a store or with an invalid config", () => {
  const invalid = expect.objectContaining({ code: "INVALID_OPTION" });
  for (const init of [undefined, {}, { store: null }, { store: {} }]) {
    expect(() => new SessionManager(init as { store: never })).toThrow(invalid);
  }
  expect(() => new SessionManager({ store: openMemoryStore(), config: { maxSessionsPerUser: -1 } })).toThrow(invalid);
});
