import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { SkeinSaver } from "../../src/interop/langgraph/index.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { openStore } from "../../src/stores/open-store.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("programs/graph-writer.mjs", import.meta.url));

test.for(["sqlite", "jsonl"])("two processes on one thread lose nothing on %s", async (kind) => {
  const folder = await mkdtemp(join(tmpdir(), "skein-graph-"));
  const url = kind === "sqlite" ? `sqlite:${join(folder, "skein.db")}` : `jsonl:${join(folder, "sessions")}`;
  const turns = 8;
  const say = async (name: string) => (await run(process.execPath, [program, url, name, String(turns)])).stdout;
  const printed = (await Promise.all([say("left"), say("right")])).join("").trim().split("\n");
  const known = printed.map((line) => JSON.parse(line) as { id: string; texts: string[] });
  expect(known.length).toBe(turns * 2);
  await using store = await openStore(url);
  const saver = new SkeinSaver(store);
  for (const { id, texts } of known) {
    const tuple = await saver.getTuple({ configurable: { thread_id: "shared", checkpoint_id: id } });
    const messages = tuple?.checkpoint.channel_values["messages"] as { content: string }[];
    expect(messages.map(({ content }) => content)).toEqual(texts);
  }
  const entries: Entry[] = [];
  for await (const entry of store.read("shared")) entries.push(entry);
  const said = entries.flatMap((entry) => (entry.type === "message" ? [String(entry.message.content)] : []));
  for (const name of ["left", "right"]) {
    expect(said.filter((text) => text === `answer to ${name}`)).toHaveLength(turns);
    for (let index = 0; index < turns; index++) expect(said).toContain(`${name} ${index}`);
  }
  await rm(folder, { recursive: true, force: true });
});
