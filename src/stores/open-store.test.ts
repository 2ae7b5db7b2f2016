import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHeader } from "../session/log/header.ts";
import { openStore } from "./open-store.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-open-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test("opens a memory store, which is not durable", async () => {
  await using store = await openStore("memory:");
  expect(store.capabilities).toMatchObject({ durable: false, shared: false });
});

test.for([
  ["jsonl:", "sessions", { search: "scan", forkByReference: false }],
  ["jsonl://", "sessions", { search: "scan", forkByReference: false }],
  ["sqlite:", "skein.db", { forkByReference: true }],
  ["sqlite://", "skein.db", { forkByReference: true }],
] as const)(
  "opens %s with a path, and reads the stored session after reopening",
  async ([scheme, name, capabilities]) => {
    const url = `${scheme}${join(directory, name)}`;
    const store = await openStore(url, { durability: "fsync" });
    expect(store.capabilities).toMatchObject({ durable: true, shared: true, ...capabilities });
    await store.create(createHeader({ id: "kept" }));
    await store.close();
    await using again = await openStore(url);
    expect((await again.head("kept"))?.header.id).toBe("kept");
    expect(await readdir(directory)).toContain(name);
  },
);

test("the error for a file in place of a session directory says that it is not a directory", async () => {
  const path = join(directory, "file");
  await writeFile(path, "");
  await using store = await openStore(`jsonl:${path}`);
  await expect(store.list()).rejects.toMatchObject({
    code: "STORE_FAILED",
    message: `${path} is not a directory or not in one; name a directory for the store.`,
  });
  await expect(store.create(createHeader({ id: "new" }))).rejects.toMatchObject({ code: "STORE_FAILED" });
});

test.for([
  "",
  "memory",
  "memory:./kept",
  "jsonl:",
  "sqlite:",
  "sqlite://host/x.db",
  "sqlite:a\0b",
  "mysql://x",
  "__proto__:x",
])("refuses %j with an error that contains it, and creates nothing", async (url) => {
  await expect(openStore(url)).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: expect.stringContaining(JSON.stringify(url)),
  });
  expect(await readdir(directory)).toEqual([]);
});

test("the error for an unknown or invalid URL does not contain its password", async () => {
  for (const url of ["postgers://me:s3cret@host/db", "postgres://me:s3cret@ho st/db", "postgresql://"]) {
    const refusal = await openStore(url).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "INVALID_OPTION" });
    expect(String(refusal)).not.toContain("s3cret");
  }
});

test("passes the durability to the store, which refuses an invalid one", async () => {
  const wrong = { durability: "never" } as never;
  await expect(openStore(`sqlite:${join(directory, "x.db")}`, wrong)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  await expect(openStore(`jsonl:${join(directory, "x")}`, wrong)).rejects.toMatchObject({ code: "INVALID_OPTION" });
});
