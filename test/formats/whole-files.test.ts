import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { foreignFormat, importForeign, importFiles } from "../../src/interop/formats/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf } from "./foreign-samples.ts";

const claudeCode = foreignFormat("claude-code");
const MIB = 1024 * 1024;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "formats-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

function line(uuid: string, parentUuid: string | null, content: string, isSidechain = false): string {
  const stamp = { sessionId: "main", timestamp: "2025-01-01T00:00:00.000Z", isSidechain };
  return `${JSON.stringify({ type: "user", uuid, parentUuid, ...stamp, message: { role: "user", content } })}\n`;
}

/** A conversation whose file also holds sub-agents, each with so many lines. */
function conversation(agents: number, lines: number, content = "x"): string {
  let text = "";
  for (let at = 0; at < lines; at++) {
    text += line(`m${at}`, at === 0 ? null : `m${at - 1}`, content);
    for (let agent = 0; agent < agents; agent++)
      text += line(`a${agent}.${at}`, at === 0 ? null : `a${agent}.${at - 1}`, content, true);
  }
  return text;
}

/** Yields a text in pieces and throws at its end. */
async function* cutOff(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  for (let from = 0; from < text.length; from += MIB) yield Buffer.from(text.slice(from, from + MIB));
  throw new Error("The disk is gone.");
}

async function lengths(store: SessionStore): Promise<number[]> {
  const { items } = await store.list();
  const counts = await Promise.all(items.map(async ({ header }) => (await entriesOf(store, header.id)).length));
  return counts.sort((a, b) => a - b);
}

test("a file that cannot be read to its end leaves no session, and none of its sub-agents", async () => {
  await using store = openMemoryStore();
  const target = { store, userId: "ana" };
  await expect(importForeign(target, claudeCode, cutOff(conversation(2, 5)))).rejects.toThrow("The disk is gone.");
  // Longer than the part that is stored in one step.
  const long = conversation(1, 36, "x".repeat(MIB / 2));
  await expect(importForeign(target, claudeCode, cutOff(long))).rejects.toThrow("The disk is gone.");
  expect(await store.count()).toBe(0);
  const { sessions } = await importForeign(target, claudeCode, [Buffer.from(conversation(2, 5))]);
  expect(sessions.map(({ outcome }) => outcome)).toEqual(["new", "new", "new"]);
  expect(await lengths(store)).toEqual([5, 5, 5]);
});

test("a sub-agent's session beyond the limit removes the sessions of the same file, and no others", async () => {
  await using store = openMemoryStore();
  const limits = { maxOpenPerUser: 3, entriesMax: 1000 };
  const target = { store, userId: "ana", limits };
  const other = conversation(0, 2).replaceAll('"main"', '"other"');
  await importForeign(target, claudeCode, [Buffer.from(other)]);
  const failing = importForeign(target, claudeCode, [Buffer.from(conversation(3, 2))]);
  await expect(failing).rejects.toMatchObject({ code: "CAPACITY" });
  expect(await lengths(store)).toEqual([2]);
});

test("the limit on entries counts all sessions in a file, and one entry too many leaves none of them", async () => {
  await using store = openMemoryStore();
  const limits = { entriesMax: 8 };
  const failing = importForeign({ store, userId: "ana", limits }, claudeCode, [Buffer.from(conversation(4, 2))]);
  await expect(failing).rejects.toMatchObject({ code: "TOO_LARGE" });
  expect(await store.count()).toBe(0);
  await importForeign({ store, userId: "ana", limits }, claudeCode, [Buffer.from(conversation(3, 2))]);
  expect(await lengths(store)).toEqual([2, 2, 2, 2]);
});

test("a session that existed before a failed import still exists", async () => {
  await using store = openMemoryStore();
  const target = { store, userId: "ana" };
  await importForeign(target, claudeCode, [Buffer.from(conversation(1, 2))]);
  await expect(importForeign(target, claudeCode, cutOff(conversation(2, 5)))).rejects.toThrow("The disk is gone.");
  expect(await lengths(store)).toEqual([2, 2]);
});

test("a sub-agent's file that cannot be imported is a loss, and the session that started it is complete", async () => {
  const folder = "9d931a05-4fd7-4e38-bb6b-df8fc4afbbb8";
  await writeFile(join(directory, `${folder}.jsonl`), conversation(0, 4));
  const agent = `${JSON.stringify({ ...JSON.parse(line("x", null, "y", true)), version: "v".repeat(300_000) })}\n`;
  await writeFile(join(directory, "agent-1.jsonl"), agent);
  await using store = openMemoryStore();
  const steps = [];
  for await (const step of importFiles({ store, userId: "ana" }, { format: claudeCode, path: directory }))
    steps.push(step);
  expect(steps.map(({ report }) => report.lost).sort()).toEqual([0, 1]);
  expect(await lengths(store)).toEqual([4]);
});

/** Imports a file in a separate process, which kills itself after so many writes. */
async function importKilled(file: string, store: string, writes: number): Promise<NodeJS.Signals | null> {
  const program = `
    import { openStore } from "skein";
    import { foreignFormat, importFiles } from "skein/formats";
    const store = await openStore(${JSON.stringify(store)});
    let left = ${writes};
    for (const name of ["create", "append"]) {
      const write = store[name].bind(store);
      store[name] = async (...given) => {
        const result = await write(...given);
        if (--left === 0) process.kill(process.pid, "SIGKILL");
        return result;
      };
    }
    const options = { format: foreignFormat("claude-code"), path: ${JSON.stringify(file)} };
    for await (const step of importFiles({ store, userId: "ana" }, options)) void step;
    await store[Symbol.asyncDispose]();
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return signal;
}

test("a process that is killed during an import leaves complete sessions, or none", async () => {
  const [file, lines] = [join(directory, "talk.jsonl"), 300];
  await writeFile(file, conversation(3, lines, "x".repeat(12_000)));
  for (const writes of [1, 2, 3]) {
    const path = join(directory, `store-${writes}`);
    expect(await importKilled(file, `jsonl:${path}`, writes)).toBe("SIGKILL");
    {
      await using store = await openJsonlStore({ directory: path });
      expect(await lengths(store)).toEqual(Array.from({ length: writes }, () => lines));
    }
    expect(await importKilled(file, `jsonl:${path}`, Number.POSITIVE_INFINITY)).toBeNull();
    await using store = await openJsonlStore({ directory: path });
    expect(await lengths(store)).toEqual([lines, lines, lines, lines]);
  }
});
