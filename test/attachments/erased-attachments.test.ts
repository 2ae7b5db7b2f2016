import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHeader, SessionManager } from "../../src/index.ts";
import { importSession } from "../../src/export/index.ts";
import { exported } from "../erase/traces.ts";
import { rawTracesOf } from "../erase/raw-traces.ts";
import { backends, kindOf } from "../store-backends.ts";
import { holds, nameOf, pictured } from "../../src/testing/store/blob-cases.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-attachments-"));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

for (const backend of backends) {
  test(`erasing removes the pictures that nothing else refers to from the ${backend.name} store, in every raw file and key`, async () => {
    const word = `quetzal${randomBytes(8).toString("hex")}`;
    // Blocks of a multiple of three bytes, so that the word is found in base64, too; random ones, so that nothing compresses them.
    const secret = Buffer.concat(
      Array.from({ length: 300 }, () => Buffer.concat([Buffer.from(`${word}-`), randomBytes(30)])),
    );
    const shared = Buffer.from("shared ".repeat(1000));
    await using store = await backend.open(join(directory, "store"));
    const manager = new SessionManager({ store });
    await manager.create({ id: "ada", userId: "ada" });
    await store.append("ada", [pictured(shared, "1"), pictured(secret, "2")]);
    await store.fork("ada", createHeader({ id: "copy", userId: "bob" }), { at: "1" });
    const file = await exported(store, "ada");
    const traces = (): Promise<readonly string[]> => rawTracesOf(backend.name, directory, word);
    if (kindOf(backend.name) !== "memory") expect(await traces()).not.toEqual([]);

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
