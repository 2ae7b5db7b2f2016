import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SessionStore } from "../src/session/store.ts";
import { openMemoryStore } from "../src/stores/memory/index.ts";
import { skipReason, type StoreCase, storeCases } from "../src/testing/index.ts";

/** A kind of store. */
interface Backend {
  readonly name: string;
  /** The store that lives in a directory; the same sessions when it is opened there again. */
  open(directory: string): Promise<SessionStore>;
  /** The only reasons for which a case may be skipped. */
  readonly skips: readonly string[];
}

const backends: readonly Backend[] = [
  {
    name: "memory",
    open: async () => openMemoryStore(),
    skips: ["the store does not outlive the process", "the store belongs to one process"],
  },
];

test("gives every case a name of its own", () => {
  expect(new Set(storeCases.map(({ name }) => name)).size).toBe(storeCases.length);
});

for (const backend of backends) {
  describe(`the ${backend.name} store`, () => {
    for (const storeCase of storeCases) test(storeCase.name, ({ skip }) => runCase(backend, storeCase, skip));
  });
}

async function runCase(backend: Backend, storeCase: StoreCase, skip: (note: string) => never): Promise<void> {
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
      skip(reason);
    }
    await storeCase.run(context);
  } finally {
    await Promise.all(handles.map((store) => store.close()));
    await rm(directory, { recursive: true, force: true });
  }
}
