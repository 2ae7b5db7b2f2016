import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as vitest from "vitest";
import { SkeinSaver } from "../../src/interop/langgraph/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { backends } from "../store-backends.ts";

// The kit expects the functions of its runner to be global.
const { describe, it, expect, beforeAll, beforeEach, afterAll, afterEach } = vitest;
Object.assign(globalThis, { describe, it, expect, beforeAll, beforeEach, afterAll, afterEach });
const { deltaChannelHistoryTests, specTest } = await import("@langchain/langgraph-checkpoint-validation");

const names = ["memory", "jsonl", "sqlite (libsql)", "postgres", "redis"];

for (const backend of backends.filter(({ name }) => names.includes(name))) {
  const opened = new Map<SkeinSaver, { readonly store: SessionStore; readonly directory: string }>();
  const initializer = {
    checkpointerName: `SkeinSaver on ${backend.name}`,
    async createCheckpointer(): Promise<SkeinSaver> {
      const directory = await mkdtemp(join(tmpdir(), "skein-langgraph-"));
      const store = await backend.open(directory);
      const saver = new SkeinSaver(store);
      opened.set(saver, { store, directory });
      return saver;
    },
    async destroyCheckpointer(saver: SkeinSaver): Promise<void> {
      const { store, directory } = opened.get(saver) ?? {};
      await store?.close();
      if (directory !== undefined) await rm(directory, { recursive: true, force: true });
    },
  };
  describe(backend.name, () => {
    specTest(initializer);
    deltaChannelHistoryTests(initializer);
  });
}
