import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { assistant, message, usage, user as said } from "../../../test/sample-log.ts";
import { idsOf, openSink as open, sessionOf, typesOf } from "../../../test/sample-sink.ts";
import { registerSandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import { Session } from "../../session/value/session.ts";
import { assistantRow, Transcript, userRow } from "../../session/value/transcript.ts";
import { openJsonlStore } from "../../stores/jsonl/index.ts";
import { loadSession } from "../../tree/persisted-session.ts";
import { SessionTree } from "../../tree/session-tree.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-sink-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

test("a tree that waits for its file has it with the first run, before a model has answered", async () => {
  await using tree = await SessionTree.create("/project", { directory });
  const { sink } = await open(tree, sessionOf(userRow("one")));
  expect(tree.persisted).toBe(true);
  await using other = await SessionTree.open(tree.path as string, { readOnly: true });
  expect(typesOf(await other.entries())).toEqual(["message", "variables", "started"]);
  await sink.abandon();
});

describe("in a file", () => {
  const names = async () => (await readdir(directory)).filter((name) => !name.startsWith("."));

  test("is partial while the run goes on, and has trailer and final name when it has finished", async () => {
    const path = join(directory, "run.jsonl");
    const user = sessionOf(userRow("one"));
    const { sink, request } = await open(path, user);
    expect(await names()).toEqual(["run.jsonl.__partial__"]);
    await sink.append([message("two", assistant("two", { usage: usage(2, 3) }))]);
    expect(await readFile(`${path}.__partial__`, "utf8")).toContain('"id":"two"');
    expect(sink.origin()).toBeNull();
    await sink.end({ phase: "finished" });
    expect(await names()).toEqual(["run.jsonl"]);
    const kept = await loadSession(path);
    expect(kept).toMatchObject({
      header: { id: request.output.id, lineage: request.output.lineage },
      closed: true,
      systemPrompt: "be brief",
      usage: usage(2, 3),
    });
    expect(kept.transcript.rows.map(({ id }) => id)).toEqual([...idsOf(user), "two"]);
    const text = await readFile(path, "utf8");
    expect(text.indexOf('"phase":"finished"')).toBeLessThan(text.indexOf('"trailer"'));
  });

  test("is in the default directory when no path is given", async () => {
    vi.stubEnv("SKEIN_HOME", directory);
    const { sink, request } = await open(true, sessionOf(userRow("one")));
    await sink.end({ phase: "finished" });
    expect(await loadSession(request.output.id)).toMatchObject({ closed: true });
  });

  test.each(["failed", "cancelled"] as const)(
    "of a run that %s stays partial, and says so, without a trailer",
    async (phase) => {
      const path = join(directory, "run.jsonl");
      const { sink } = await open(path, sessionOf(userRow("one")));
      await sink.end({ phase, error: "why" });
      expect(await names()).toEqual(["run.jsonl.__partial__"]);
      const lines = (await readFile(`${path}.__partial__`, "utf8")).trimEnd().split("\n");
      expect(JSON.parse(lines.at(-1) as string)).toMatchObject({ type: "run", phase, error: "why" });
      expect((await loadSession(path)).closed).toBe(false);
    },
  );

  test("that was abandoned has nothing but the rows", async () => {
    const path = join(directory, "run.jsonl");
    const { sink } = await open(path, sessionOf(userRow("one")));
    const before = await readFile(`${path}.__partial__`);
    await sink.abandon();
    expect(await readFile(`${path}.__partial__`)).toEqual(before);
  });

  test("goes on with the session that the run starts from, and refuses any other", async () => {
    const path = join(directory, "run.jsonl");
    const first = await open(path, sessionOf(userRow("one")));
    await first.sink.append([message("two", assistant("two"))]);
    await expect(open(path, sessionOf(userRow("x")))).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await first.sink.end({ phase: "finished" });
    await expect(open(path, sessionOf(userRow("x")))).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    const { header, transcript } = await loadSession(path);
    const user = Session.of(transcript.append({ id: "three", message: said("three") }), { id: header.id });
    const second = await open(path, user);
    expect(second.sink.sessionId).toBe(header.id);
    await second.sink.append([message("four", assistant("four"))]);
    await second.sink.end({ phase: "finished" });
    const kept = await loadSession(path);
    expect(kept.transcript.rows.map(({ id }) => id).slice(1)).toEqual(["two", "three", "four"]);
    expect(kept).toMatchObject({ closed: true, header: { id: header.id } });
  });

  test("goes on with rows that come from it, whatever the session that has them is called", async () => {
    const path = join(directory, "run.jsonl");
    const first = await open(path, sessionOf(userRow("one")));
    const reply = assistantRow([], "two");
    await first.sink.append([message(reply.id, reply.message)]);
    // The context of the file begins with a summary from here on, and the value in memory does not.
    const compaction = { type: "compaction", summary: "s", firstKeptEntryId: reply.id, tokensBefore: 9 } as const;
    await first.sink.append([compaction, { type: "model_change", provider: "p", modelId: "m" }]);
    await first.sink.end({ phase: "finished" });
    const { transcript } = first.request.user;
    const next = Session.of(transcript.append(reply, { id: "three", message: said("three") }));
    const second = await open(path, next);
    expect([second.user, second.sink.sessionId]).toEqual([next, first.request.output.id]);
    await second.sink.append([message("four", assistant("four"))]);
    await second.sink.end({ phase: "finished" });
    const kept = (await loadSession(path)).transcript.rows.map(({ id }) => id);
    expect(kept.slice(1)).toEqual([reply.id, "three", "four"]);
    const forged = Session.of(Transcript.of([{ id: "three", message: said("something else") }]));
    await expect(open(path, forged)).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  });

  test("records the sandbox of the run, with the handle that it is told", async () => {
    registerSandboxBackend("sink-test", () => {
      throw new Error("never opened");
    });
    const path = join(directory, "run.jsonl");
    const user = sessionOf(userRow("one")).to("sink-test", "/w");
    const { sink } = await open(path, user, { sandboxHandleId: "h-1" });
    await sink.abandon();
    expect((await loadSession(path)).header.sandbox).toEqual({
      backend: "sink-test",
      spec: { workingDir: "/w" },
      handleId: "h-1",
    });
  });

  test("is found by a store of the directory, in flight and afterwards", async () => {
    const path = join(directory, "run.jsonl");
    const { sink, request } = await open(path, sessionOf(userRow("one")));
    await using store = await openJsonlStore({ directory });
    const { id } = request.output;
    expect((await store.head(id))?.messageCount).toBe(1);
    await sink.append([message("two", assistant("two"))]);
    await sink.end({ phase: "finished" });
    expect(await store.head(id)).toMatchObject({ closed: true, messageCount: 2 });
    expect((await store.list()).items.map(({ header }) => header.id)).toEqual([id]);
  });
});
