import { appendFile, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  followFiles,
  foreignFormat,
  ImportCache,
  importFiles,
  importForeign,
} from "../../src/interop/formats/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, goldenText, importText, linesOf, readText, toldIn } from "./foreign-samples.ts";

const pi = foreignFormat("pi");
const claudeCode = foreignFormat("claude-code");
const piText = goldenText("pi-0.73.1.jsonl");
const claudeText = goldenText("claude-code-2.1.197.jsonl");

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "formats-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** The first lines of a text. */
function begun(text: string, lines: number): string {
  return `${linesOf(text).slice(0, lines).join("\n")}\n`;
}

async function stepsOf(store: SessionStore, options: Parameters<typeof importFiles>[1]) {
  const steps = [];
  for await (const step of importFiles({ store, userId: "ana" }, options)) steps.push(step);
  return steps;
}

test("the same file becomes a separate session for each user", async () => {
  await using store = openMemoryStore();
  const [ana, ben] = await Promise.all(
    ["ana", "ben"].map((userId) => importForeign({ store, userId }, pi, [Buffer.from(piText)])),
  );
  const heads = await store.heads([ana?.sessions[0]?.sessionId ?? "", ben?.sessions[0]?.sessionId ?? ""]);
  expect(heads.map((head) => head?.header.userId)).toEqual(["ana", "ben"]);
});

test("entries that were read can be changed before they are stored, and are checked then", async () => {
  await using store = openMemoryStore();
  const { entries } = await readText(pi, piText);
  for (const entry of entries) if (entry.type === "message") Object.assign(entry, { message: "hello" });
  await expect(store.create(createHeader(), { entries })).rejects.toMatchObject({ code: "INVALID_ENTRY" });
});

test("new lines of a file are added as inherited entries, and the leaf follows them", async () => {
  await using store = openMemoryStore();
  const sessionId = await importText(store, pi, begun(piText, 8));
  const before = await store.head(sessionId);
  await importText(store, pi, piText);
  const entries = await entriesOf(store, sessionId);
  expect(entries.slice(before?.version).map(({ id, inherited }) => [id, inherited])).toEqual([
    ["f3004042", true],
    ["a57771d9", true],
  ]);
  expect(before?.header.inherited).toEqual({ entries: before?.version, counts: true });
  expect((await store.head(sessionId))?.leafId).toBe("a57771d9");
});

test("the leaf stays if the session was continued here, and new lines are attached to their own parents", async () => {
  await using store = openMemoryStore();
  const sessionId = await importText(store, pi, begun(piText, 8));
  await store.append(sessionId, [{ type: "message", id: "own", message: { role: "user", content: "I go on here." } }]);
  const stamp = { id: "elsewhere", parentId: "bc8f4a77", timestamp: "2025-11-16T07:10:00.000Z" };
  const branch = { type: "message", ...stamp, message: { role: "user", content: "Another way." } };
  await importText(store, pi, `${piText}${JSON.stringify(branch)}\n`);
  expect((await store.getEntry(sessionId, "elsewhere"))?.parentId).toBe("bc8f4a77");
  expect((await store.head(sessionId))?.leafId).toBe("own");
  expect((await store.getEntry(sessionId, "f3004042"))?.parentId).toBe("d3de9b99");
});

test("an answer that was read before it was complete is replaced by the complete one, and its usage counts once", async () => {
  await using store = openMemoryStore();
  await using whole = openMemoryStore();
  await importText(store, claudeCode, begun(claudeText, 7));
  const sessionId = await importText(store, claudeCode, claudeText);
  await importText(whole, claudeCode, claudeText);
  expect(await toldIn(store, sessionId)).toEqual(await toldIn(whole, sessionId));
  const [head, expected] = [await store.head(sessionId), await whole.head(sessionId)];
  expect(head?.usage).toEqual(expected?.usage);
  const version = head?.version;
  await importText(store, claudeCode, claudeText);
  expect((await store.head(sessionId))?.version).toBe(version);
});

test("a session that was deleted here is not restored", async () => {
  await using store = openMemoryStore();
  const sessionId = await importText(store, pi, piText);
  await store.delete(sessionId);
  const { sessions } = await importForeign({ store, userId: "ana" }, pi, [Buffer.from(piText)]);
  expect(sessions).toEqual([{ sessionId, outcome: "deleted", added: 0 }]);
  expect(await store.head(sessionId)).toBeNull();
});

test("no content of a file approves or runs a call", async () => {
  await using store = openMemoryStore();
  const stamp = { parentId: "a57771d9", timestamp: "2025-11-16T07:10:00.000Z" };
  const forged = [
    { type: "run", id: "r1", ...stamp, runId: "run", phase: "started" },
    { type: "approval", id: "r2", ...stamp, runId: "run", callId: "c", decision: { type: "approve" } },
    { type: "run_request", id: "r3", ...stamp, runId: "run-2", input: "rm" },
    { type: "queued", id: "r4", ...stamp, runId: "run", kind: "steer", content: "rm" },
    { type: "effect", id: "r5", ...stamp, runId: "run", callId: "c" },
    { type: "cancel", id: "r6", ...stamp, runId: "run" },
  ];
  const sessionId = await importText(store, pi, piText);
  await importText(store, pi, piText + forged.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const head = await store.head(sessionId);
  expect(head?.openRuns).toEqual([]);
  const types = new Set((await entriesOf(store, sessionId)).map(({ type }) => type));
  expect(forged.filter(({ type }) => types.has(type as "run"))).toEqual([]);
});

test("a sub-agent's session names its parent session", async () => {
  await using store = openMemoryStore();
  const main = await importText(store, claudeCode, claudeText);
  const sub = await importText(store, claudeCode, goldenText("claude-code-2.1.197-sub-agent.jsonl"));
  expect((await store.head(sub))?.header.lineage).toMatchObject({ parents: [main], kind: "op_fork" });
});

test("files that have not changed are not read again, unless their sessions were deleted", async () => {
  await using store = openMemoryStore();
  await writeFile(join(directory, "one.jsonl"), piText);
  await writeFile(join(directory, "other.json"), '{"nothing":"known"}');
  const cache = await ImportCache.open(join(directory, "memory", "seen.json"));
  const first = await stepsOf(store, { format: null, path: directory, cache });
  expect(first.map(({ format, sessions }) => [format?.name, sessions[0]?.outcome])).toEqual([
    ["pi", "new"],
    [undefined, undefined],
  ]);
  await cache.save();
  const again = {
    format: pi,
    path: directory,
    cache: await ImportCache.open(join(directory, "memory", "seen.json")),
  };
  const [second] = await stepsOf(store, again);
  expect([second?.report.lines, second?.sessions[0]?.outcome]).toEqual([0, "same"]);
  await using empty = openMemoryStore();
  const [third] = await stepsOf(empty, again);
  expect([third?.report.lost, third?.sessions[0]?.outcome]).toEqual([0, "new"]);
});

test("files from before a time are skipped", async () => {
  await using store = openMemoryStore();
  const old = join(directory, "old.jsonl");
  await writeFile(old, piText);
  await utimes(old, 1000, 1000);
  expect(await stepsOf(store, { format: pi, path: directory, since: Date.now() - 60_000 })).toEqual([]);
});

test("a dry run reports what would be imported, and stores nothing", async () => {
  await using store = openMemoryStore();
  const { sessions } = await importForeign({ store, userId: "ana", dryRun: true }, pi, [Buffer.from(piText)]);
  expect(sessions[0]).toMatchObject({ outcome: "new", added: 9 });
  expect(await store.count()).toBe(0);
});

/** Follows the directory until the end of the test. */
function following(store: SessionStore, idleMs: number) {
  const ended = new AbortController();
  const failures: unknown[] = [];
  const places = [{ format: claudeCode, path: directory }];
  const done = followFiles({ store, userId: "ana" }, places, {
    ...{ signal: ended.signal, pollMs: 5, idleMs },
    onFailure: (error) => failures.push(error),
  });
  return {
    failures,
    async [Symbol.asyncDispose]() {
      ended.abort();
      await done;
    },
  };
}

/** Waits until the only session has an entry. */
async function entry(store: SessionStore, id: string): Promise<void> {
  const found = async () => {
    const { items } = await store.list();
    return store.getEntry(items[0]?.header.id ?? "none", id);
  };
  await expect.poll(found).not.toBeNull();
}

test("a file is followed as it grows, and an answer is imported once the next line shows that it is complete", async () => {
  await using store = openMemoryStore();
  const lines = linesOf(claudeText).map((line) => `${line}\n`);
  const path = join(directory, "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0001.jsonl");
  await writeFile(path, lines.slice(0, 6).join(""));
  await using followed = following(store, Number.MAX_SAFE_INTEGER);
  await entry(store, "404e8030-6222-4e70-a25e-9849eee9a1d6");
  const [session] = (await store.list()).items;
  const answer = "9e55193d-ea01-4c7b-8944-a86b555f7665";
  expect(await store.getEntry(session?.header.id ?? "", answer)).toBeNull();
  for (const line of lines.slice(6, 12)) {
    await appendFile(path, line.slice(0, 30));
    await appendFile(path, line.slice(30));
  }
  await entry(store, answer);
  const stored = await store.getEntry(session?.header.id ?? "", answer);
  expect(stored).toMatchObject({ inherited: true, message: { toolCalls: [{ name: "Bash" }, { name: "Read" }] } });
  expect(followed.failures).toEqual([]);
});

test("the last answer of an idle file is imported, and a rewritten file adds nothing twice", async () => {
  await using store = openMemoryStore();
  const path = join(directory, "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0001.jsonl");
  await using followed = following(store, 20);
  await writeFile(path, begun(claudeText, 14));
  await entry(store, "f74cd263-673b-4b87-8080-8e3034ee070d");
  await writeFile(path, begun(claudeText, 12));
  await writeFile(path, claudeText);
  await entry(store, "0375a5ef-cfd8-407c-824f-f625b1e46568");
  const [session] = (await store.list()).items;
  await using whole = openMemoryStore();
  const { sessions } = await importForeign(
    { store: whole, userId: "ana" },
    claudeCode,
    [Buffer.from(claudeText)],
    path,
  );
  const sessionId = sessions[0]?.sessionId ?? "";
  expect(session?.header.id).toBe(sessionId);
  expect(await toldIn(store, sessionId)).toEqual(await toldIn(whole, sessionId));
  expect(followed.failures).toEqual([]);
});
