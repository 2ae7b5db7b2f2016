import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, type TestContext, test } from "vitest";
import type { SessionStore } from "../src/session/store.ts";
import { skipReason, type StoreCase, storeCases } from "../src/testing/index.ts";
import { skipBecause } from "./skip.ts";
import { type Backend, everyDriver, missingBackends, sqliteDrivers } from "./store-backends.ts";

test("gives every case a name of its own", () => {
  expect(new Set(storeCases.map(({ name }) => name)).size).toBe(storeCases.length);
});

test("runs every SQLite driver that this Node has", () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const hasOwn = major > 22 || (major === 22 && minor >= 13);
  expect(sqliteDrivers).toEqual(hasOwn ? ["libsql", "node:sqlite"] : ["libsql"]);
});

for (const backend of everyDriver) {
  describe(`the ${backend.name} store`, () => {
    for (const storeCase of storeCases) test(storeCase.name, (context) => runCase(backend, storeCase, context));
  });
}

for (const { name, reason } of missingBackends) test(`the ${name} store`, (context) => skipBecause(context, reason));

async function runCase(backend: Backend, storeCase: StoreCase, test: TestContext): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "skein-store-"));
  const handles: SessionStore[] = [];
  const open = async (): Promise<SessionStore> => {
    const store = await backend.open(directory);
    handles.push(store);
    return store;
  };
  try {
    const context = { store: await open(), reopen: open };
    const reason = skipReason(storeCase, context);
    if (reason !== null) {
      expect(backend.skips).toContain(reason);
      skipBecause(test, reason);
    }
    await storeCase.run(context);
  } finally {
    await Promise.all(handles.map((store) => store.close()));
    await rm(directory, { recursive: true, force: true });
  }
}
