import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, type TestContext, test } from "vitest";
import type { SessionStore } from "../src/session/store.ts";
import { skipReason, type StoreCase, storeCases } from "../src/testing/index.ts";
import { skipBecause } from "./skip.ts";
import { type Backend, everyDriver, kindOf, missingBackends } from "./store-backends.ts";

/** Registers the conformance cases for some kinds of stores, with every driver. Separate files run the kinds in parallel. */
export function testStores(kinds: readonly string[]): void {
  const chosen = everyDriver.filter(({ name }) => kinds.includes(kindOf(name)));
  const missing = missingBackends.filter(({ name }) => kinds.includes(kindOf(name)));
  if (chosen.length + missing.length === 0)
    test("the stores", (context) => skipBecause(context, "SKEIN_TEST_STORE leaves them out"));
  for (const backend of chosen) {
    describe(`the ${backend.name} store`, () => {
      for (const storeCase of storeCases) test(storeCase.name, (context) => runCase(backend, storeCase, context));
    });
  }
  for (const { name, reason } of missing) test(`the ${name} store`, (context) => skipBecause(context, reason));
}

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
