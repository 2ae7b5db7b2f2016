import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { EraseReport } from "../../src/lifecycle/index.ts";
import { SessionManager } from "../../src/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { filesWith } from "../erase/raw-traces.ts";
import { openClient, openStore, ownServerTest, startServer } from "./redis-support.ts";
import { until } from "./store-support.ts";

/** Compressed data cannot be found by its bytes, nor data that waits for the disk. */
const PLAIN_FILES = ["--rdbcompression", "no", "--appendfsync", "always"];
const LIMITED = "limited";

ownServerTest("a rewrite leaves the word in no file of a server with an append-only file and snapshots", async () => {
  const { client, erase, word } = await setUp(["--appendonly", "yes", "--save", "3600", "100000"]);
  const directory = await directoryOf(client);
  await client.bgsave();
  await until(async () => (await filesWith(directory, word)).length > 1, "the word in both files");
  expect((await erase()).notRewritten).toBeUndefined();
  expect(await filesWith(directory, word)).toEqual([]);
});

ownServerTest("a rewrite waits for one that had begun before the erasure, and makes another", async () => {
  const { client, erase, word } = await setUp(["--appendonly", "yes"]);
  // Half a second for each key, so that it is still under way when the erasure is done; the next one is as quick as ever.
  await client.config("SET", "rdb-key-save-delay", "500000");
  await client.bgrewriteaof();
  await client.config("SET", "rdb-key-save-delay", "0");
  expect((await erase()).notRewritten).toBeUndefined();
  expect(await filesWith(await directoryOf(client), word)).toEqual([]);
});

ownServerTest("a rewrite writes no file on a server that keeps none", async () => {
  const { client, erase } = await setUp([]);
  expect((await erase()).notRewritten).toBeUndefined();
  expect(await client.info("persistence")).toMatch(/rdb_saves:0\r/);
});

ownServerTest("says in the report that a server does not let its files be written anew", async () => {
  const { client, erase, word } = await setUp(["--appendonly", "yes"], LIMITED);
  const report = await erase();
  expect(report.sessions).toBe(1);
  expect(report.notRewritten).toMatch(/does not allow this user a command/);
  expect(await filesWith(await directoryOf(client), word)).not.toEqual([]);
});

interface SetUp {
  readonly client: Redis;
  readonly word: string;
  erase(): Promise<EraseReport>;
}

/** A server on which Ada has said a word in a session of her own and in one of Bob's. */
async function setUp(flags: readonly string[], user?: string): Promise<SetUp> {
  const server = await startServer([...PLAIN_FILES, ...flags]);
  const client = await openClient(server.url);
  await client.call("ACL", "SETUSER", LIMITED, "on", ">word", "~*", "&*", "+@all", "-bgrewriteaof");
  const url = new URL(server.url);
  if (user !== undefined) [url.username, url.password] = [user, "word"];
  const store = await openStore({ url: url.href });
  const word = `quetzal${randomBytes(8).toString("hex")}`;
  const manager = new SessionManager({ store });
  for (const [id, userId] of [
    ["hers", "ada"],
    ["his", "bob"],
  ] as const) {
    await store.create(createHeader({ id, userId }));
    await store.append(id, [{ type: "message", message: { role: "user", content: word } }], { by: "ada" });
  }
  return { client, word, erase: () => manager.erase({ userId: "ada" }, { rewrite: true }) };
}

async function directoryOf(client: Redis): Promise<string> {
  const [, directory] = (await client.config("GET", "dir")) as [string, string];
  return directory;
}
