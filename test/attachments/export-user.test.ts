import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { findBlobsIn } from "../../src/cli/options/blob-folder.ts";
import { importSession } from "../../src/export/index.ts";
import { createHeader, SessionManager } from "../../src/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { holds, nameOf, pictured, sampleBytes } from "../../src/testing/store/blob-cases.ts";

test("the archive of a user has all images and files, those of deleted sessions and those too large for an entry included", async () => {
  const [small, discarded] = [sampleBytes(1), sampleBytes(2)];
  const large = Buffer.alloc(9_000_000, "a file of nine million bytes");
  await using store = openMemoryStore();
  const manager = new SessionManager({ store });
  await store.create(createHeader({ id: "a", userId: "ada" }), { entries: [pictured(small)] });
  const ref = await store.putBlob("a", large);
  const part = { type: "file", mediaType: "text/plain", ...ref } as const;
  for (let time = 0; time < 2; time++)
    await store.append("a", [{ type: "message", message: { role: "user", content: [part] } }]);
  await store.create(createHeader({ id: "b", userId: "ada" }), { entries: [pictured(discarded)] });
  await store.delete("b");
  const folder = await mkdtemp(join(tmpdir(), "skein-archive-"));
  try {
    const pieces: Uint8Array[] = [];
    for await (const piece of manager.exportUser("ada")) pieces.push(piece);
    await writeFile(join(folder, "ada.tar"), pieces);
    await promisify(execFile)("tar", ["-xf", "ada.tar"], { cwd: folder });
    expect(await readdir(join(folder, "blobs"))).toEqual([nameOf(large).slice("sha256:".length)]);
    const findBlob = await findBlobsIn(join(folder, "blobs"));
    await using imported = openMemoryStore();
    for (const name of ["000001", "000002"]) {
      const text = await readFile(join(folder, "sessions", `${name}.jsonl`), "utf8");
      await importSession(imported, text.trimEnd().split("\n"), { findBlob });
    }
    for (const bytes of [small, large]) await holds(imported, "a", bytes);
    await holds(imported, "b", discarded);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
