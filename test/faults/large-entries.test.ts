import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { postgresUrl } from "../postgres-server.ts";
import { redisSkip, redisUrl } from "../redis-server.ts";

const PROGRAM = fileURLToPath(new URL("programs/read-large.mjs", import.meta.url));
const MIB = 1024 * 1024;
const ENTRIES = 30;
/** Less than half of the entries' size, and room for a few of them. */
const HEAP_MEGABYTES = 72;

const STORES: readonly (readonly [name: string, url: (directory: string) => Promise<string>])[] = [
  ["jsonl", async (directory) => `jsonl:${directory}`],
  ["sqlite", async (directory) => `sqlite:${join(directory, "skein.db")}`],
  ["postgres", () => postgresUrl()],
  ...(redisSkip === null ? [["redis", () => redisUrl()] as const] : []),
];

async function readWithSmallHeap(url: string, id: string): Promise<string[]> {
  const args = [`--max-old-space-size=${HEAP_MEGABYTES}`, "--no-warnings", PROGRAM, url, id];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  await once(child, "close");
  return text.trim().split("\n");
}

test.for(STORES)("%s gives entries of 3 MiB each in pieces that fit into a small heap", async ([, urlOf]) => {
  const directory = await mkdtemp(join(tmpdir(), "skein-large-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const url = await urlOf(directory);
  await using store = await openStore(url);
  const id = `large-${process.pid}`;
  await store.create(createHeader({ id }));
  // One entry that compresses well and one that does not, after small ones.
  const texts = [
    "x".repeat(3 * MIB),
    Array.from({ length: (3 * MIB) / 8 }, (_, i) => (i * 7919).toString(36)).join(" "),
  ];
  const small = Array.from(
    { length: 300 },
    () => ({ type: "message", message: { role: "user", content: "small" } }) as const,
  );
  await store.append(id, small);
  let characters = 300 * 5;
  for (let i = 0; i < ENTRIES; i++) {
    const content = texts[i % 2] as string;
    characters += content.length;
    await store.append(id, [{ type: "message", message: { role: "user", content } }]);
  }
  const count = `${300 + ENTRIES} ${characters}`;
  expect(await readWithSmallHeap(url, id)).toEqual([count, count, "1"]);
  await store.delete(id);
});
