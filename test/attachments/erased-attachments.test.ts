import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHeader, SessionManager, type SessionStore } from "../../src/index.ts";
import { fileBlobs, s3Blobs } from "../../src/stores/blobs/index.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { s3Server } from "../s3-server.ts";
import { importSession } from "../../src/export/index.ts";
import { exported } from "../erase/traces.ts";
import { filesWith, rawTracesOf } from "../erase/raw-traces.ts";
import { backends, kindOf } from "../store-backends.ts";
import { holds, nameOf, pictured } from "../../src/testing/store/blob-cases.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-attachments-"));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

/** Every kind of store with its blobs in itself, and one with its blobs elsewhere. */
const kinds: readonly { readonly name: string; open(): Promise<SessionStore>; readonly traces: Traces }[] = [
  ...backends.map(({ name, open }) => ({
    name: `${name} store`,
    open: () => open(join(directory, "store")),
    traces: kindOf(name) === "memory" ? null : (word: string) => rawTracesOf(name, directory, word),
  })),
  {
    name: "jsonl store with blobs in files",
    open: () => openJsonlStore({ directory: join(directory, "store"), blobs: fileBlobs(join(directory, "blobs")) }),
    traces: (word: string) => filesWith(directory, word),
  },
  {
    name: "sqlite store with blobs in S3",
    open: async () =>
      openSqliteStore({
        path: join(directory, "skein.db"),
        driver: "libsql",
        blobs: s3Blobs({ ...(await s3Server()).options, prefix: `${randomBytes(8).toString("hex")}/` }),
      }),
    traces: async (word: string) => [
      ...(await filesWith(directory, word)),
      ...(await filesWith((await s3Server()).directory, word)),
    ],
  },
];

type Traces = ((word: string) => Promise<readonly string[]>) | null;

for (const { name, open, traces: tracesOf } of kinds) {
  test(`erasing removes the pictures that nothing else refers to from the ${name}, in every raw file, key and object`, async () => {
    const word = `quetzal${randomBytes(8).toString("hex")}`;
    // Blocks of a multiple of three bytes, so that the word is found in base64, too; random ones, so that nothing compresses them.
    const secret = Buffer.concat(
      Array.from({ length: 300 }, () => Buffer.concat([Buffer.from(`${word}-`), randomBytes(30)])),
    );
    const shared = Buffer.from("shared ".repeat(1000));
    await using store = await open();
    const manager = new SessionManager({ store });
    await manager.create({ id: "ada", userId: "ada" });
    await store.append("ada", [pictured(shared, "1"), pictured(secret, "2")]);
    await store.fork("ada", createHeader({ id: "copy", userId: "bob" }), { at: "1" });
    const file = await exported(store, "ada");
    const traces = async (): Promise<readonly string[]> => (await tracesOf?.(word)) ?? [];
    if (tracesOf !== null) expect(await traces()).not.toEqual([]);

    const report = await manager.erase({ sessionId: "ada" }, { rewrite: true });
    expect(report).toMatchObject({ sessions: 1, blobs: 1, notCovered: [] });
    expect(await traces()).toEqual([]);
    await holds(store, "copy", shared);
    expect(await store.blob("copy", nameOf(secret))).toBeNull();
    // The tombstones keep the import from bringing it back.
    await expect(importSession(store, file.trimEnd().split("\n"), { trust: true })).rejects.toMatchObject({
      code: "ERASED",
    });
    expect(await traces()).toEqual([]);
  });
}
