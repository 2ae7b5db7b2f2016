import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { assistant, message, usage, user as said } from "../../../test/sample-log.ts";
import { idsOf, openLog as open, sessionOf, typesOf } from "../../../test/sample-run-log.ts";
import { registerSandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import { Session } from "../../session/value/session.ts";
import { assistantRow, Transcript, userRow } from "../../session/value/transcript.ts";
import { openJsonlStore } from "../../stores/jsonl/index.ts";
import { loadSession } from "../../tree/persisted-session.ts";
import { SessionTree } from "../../tree/session-tree.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-log-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

test("a tree that waits for its file has it with the first run, before a model has answered", async () => {
  await using tree = await SessionTree.create("/project", { directory });
  const { log } = await open(tree, sessionOf(userRow("one")));
  expect(tree.persisted).toBe(true);
  await using other = await SessionTree.open(tree.path as string, { readOnly: true });
  expect(typesOf(await other.entries())).toEqual(["message", "variables", "started"]);
  await log.abandon();
});

describe("in a file", () => {
  const names = async () => (await readdir(directory)).filter((name) => !name.startsWith("."));

  test("is partial during the run, and has a trailer and its final name afterwards", async () => {
    const path = join(directory, "run.jsonl");
    const user = sessionOf(userRow("one"));
    const { log, request } = await open(path, user);
    expect(await names()).toEqual(["run.jsonl.__partial__"]);
    await log.append([message("two", assistant("two", { usage: usage(2, 3) }))]);
    expect(await readFile(`${path}.__partial__`, "utf8")).toContain('"id":"two"');
    expect(log.origin()).toBeNull();
    await log.end({ phase: "finished" });
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
    const { log, request } = await open(true, sessionOf(userRow("one")));
    await log.end({ phase: "finished" });
    expect(await loadSession(request.output.id)).toMatchObject({ closed: true });
  });

  test.each(["failed", "cancelled"] as const)(
    "of a run that %s stays partial, with that end, and without a trailer",
    async (phase) => {
      const path = join(directory, "run.jsonl");
      const { log } = await open(path, sessionOf(userRow("one")));
      await log.end({ phase, error: "why" });
      expect(await names()).toEqual(["run.jsonl.__partial__"]);
      const lines = (await readFile(`${path}.__partial__`, "utf8")).trimEnd().split("\n");
      expect(JSON.parse(lines.at(-1) as string)).toMatchObject({ type: "run", phase, error: "why" });
      expect((await loadSession(path)).closed).toBe(false);
    },
  );

  test("of an abandoned run has the rows only", async () => {
    const path = join(directory, "run.jsonl");
    const { log } = await open(path, sessionOf(userRow("one")));
    const before = await readFile(`${path}.__partial__`);
    await log.abandon();
    expect(await readFile(`${path}.__partial__`)).toEqual(before);
  });

  test("continues the session from which the run starts, and refuses any other", async () => {
    const path = join(directory, "run.jsonl");
    const first = await open(path, sessionOf(userRow("one")));
    await first.log.append([message("two", assistant("two"))]);
    await expect(open(path, sessionOf(userRow("x")))).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await first.log.end({ phase: "finished" });
    await expect(open(path, sessionOf(userRow("x")))).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    const { header, transcript } = await loadSession(path);
    const user = Session.of(transcript.append({ id: "three", message: said("three") }), { id: header.id });
    const second = await open(path, user);
    expect(second.log.sessionId).toBe(header.id);
    await second.log.append([message("four", assistant("four"))]);
    await second.log.end({ phase: "finished" });
    const kept = await loadSession(path);
    expect(kept.transcript.rows.map(({ id }) => id).slice(1)).toEqual(["two", "three", "four"]);
    expect(kept).toMatchObject({ closed: true, header: { id: header.id } });
  });

  test("continues with rows that come from it, even if their session has another id", async () => {
    const path = join(directory, "run.jsonl");
    const first = await open(path, sessionOf(userRow("one")));
    const reply = assistantRow([], "two");
    await first.log.append([message(reply.id, reply.message)]);
    // The context of the file begins with a summary from here on, and the value in memory does not.
    const compaction = { type: "compaction", summary: "s", firstKeptEntryId: reply.id, tokensBefore: 9 } as const;
    await first.log.append([compaction, { type: "model_change", provider: "p", modelId: "m" }]);
    await first.log.end({ phase: "finished" });
    const { transcript } = first.request.user;
    const next = Session.of(transcript.append(reply, { id: "three", message: said("three") }));
    const second = await open(path, next);
    expect([second.user, second.log.sessionId]).toEqual([next, first.request.output.id]);
    await second.log.append([message("four", assistant("four"))]);
    await second.log.end({ phase: "finished" });
    const kept = (await loadSession(path)).transcript.rows.map(({ id }) => id);
    expect(kept.slice(1)).toEqual([reply.id, "three", "four"]);
    const forged = Session.of(Transcript.of([{ id: "three", message: said("something else") }]));
    await expect(open(path, forged)).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  });

  test("records the sandbox of the run, with the given handle", async () => {
    registerSandboxBackend("log-test", () => {
      throw new Error("never opened");
    });
    const path = join(directory, "run.jsonl");
    const user = sessionOf(userRow("one")).to("log-test", "/w");
    const { log } = await open(path, user, { sandboxHandleId: "h-1" });
    await log.abandon();
    expect((await loadSession(path)).header.sandbox).toEqual({
      backend: "log-test",
      spec: { workingDir: "/w" },
      handleId: "h-1",
    });
  });

  test("is found by a store of the directory, in flight and afterwards", async () => {
    const path = join(directory, "run.jsonl");
    const { log, request } = await open(path, sessionOf(userRow("one")));
    await using store = await openJsonlStore({ directory });
    const { id } = request.output;
    expect((await store.head(id))?.messageCount).toBe(1);
    await log.append([message("two", assistant("two"))]);
    await log.end({ phase: "finished" });
    expect(await store.head(id)).toMatchObject({ closed: true, messageCount: 2 });
    expect((await store.list()).items.map(({ header }) => header.id)).toEqual([id]);
  });
});
