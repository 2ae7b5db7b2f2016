import { describe, expect, test } from "vitest";
import type { Entry } from "../session/log/entry.ts";
import { createHeader } from "../session/log/header.ts";
import { answerIdOf, requestIdOf } from "../session/log/open-runs.ts";
import type { SessionStore } from "../session/store.ts";
import { viewAsInherited } from "./inherited-view.ts";
import { openMemoryStore } from "./memory/index.ts";

const say = (content: string) => ({ type: "message", message: { role: "user", content } }) as const;
const sandbox = { backend: "local", spec: { isolation: "off" }, handleId: null };
const request = (runId: string) => ({ type: "run_request", id: requestIdOf(runId), runId, input: "Do it." }) as const;

/** A store with one session: it has an approved run, a requested run, and a checkpoint with a snapshot. */
async function written(): Promise<SessionStore> {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "s", sandbox }));
  const question = { type: "approval", id: "q", runId: "r", callId: "c" } as const;
  const decision = { approved: true };
  await store.append("s", [request("r"), say("Do it."), { type: "run", runId: "r", phase: "started" }, question]);
  await store.append("s", [{ ...question, id: answerIdOf("q"), question: "q", decision }, request("later")]);
  const position = { sessionId: "s", version: 2, leafId: null, createdAt: "2026-01-01T00:00:00.000Z" };
  await store.saveCheckpoint({
    ...position,
    id: "k",
    parentCheckpointId: null,
    metadata: {},
    sandboxSnapshot: { id: "x" },
  });
  return store;
}

async function inheritedMarks(store: SessionStore): Promise<readonly (true | undefined)[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read("s")) entries.push(entry);
  const texts = (await store.readJson("s")).map((text) => JSON.parse(text) as Entry);
  expect(texts).toEqual(entries);
  return entries.map(({ inherited }) => inherited);
}

describe("a store viewed as inherited", () => {
  test("shows no open run, no sandbox and no snapshot in any method, and every entry as inherited", async () => {
    const view = viewAsInherited(await written());
    const heads = [await view.head("s"), ...(await view.heads(["s"])), ...(await view.list()).items];
    heads.push(...(await view.search("Do it")).map(({ head }) => head));
    expect(heads).toHaveLength(4);
    for (const head of heads) expect(head).toMatchObject({ openRuns: [], header: { sandbox: null } });
    for (const runs of ["requested", "running", "asking", "interrupted"] as const) {
      expect([runs, (await view.list({ runs })).items, await view.count({ runs })]).toEqual([runs, [], 0]);
    }
    expect((await view.list({ dueBefore: "9999-01-01T00:00:00.000Z" })).items).toEqual([]);
    expect(await inheritedMarks(view)).toEqual([true, true, true, true, true, true]);
    expect(await view.getEntry("s", "q")).toMatchObject({ inherited: true });
    expect(await view.loadCheckpoint("k")).not.toHaveProperty("sandboxSnapshot");
    expect(await view.listCheckpoints("s")).toMatchObject([{ id: "k" }]);
  });

  test("entries appended through it are not inherited, and entries appended otherwise are", async () => {
    const store = await written();
    const view = viewAsInherited(store);
    const { entries, head } = await view.append("s", [request("own")]);
    expect([entries[0]?.inherited, head.openRuns]).toEqual([
      undefined,
      [{ runId: "own", state: "requested", first: 6 }],
    ]);
    await store.append("s", [request("others")]);
    await view.append("s", [{ type: "run", runId: "own", phase: "started" }]);
    expect((await view.head("s"))?.openRuns).toMatchObject([{ runId: "own", state: "started" }]);
    expect((await inheritedMarks(view)).slice(6)).toEqual([undefined, true, undefined]);
    expect((await viewAsInherited(store).head("s"))?.openRuns).toEqual([]);
  });

  test("a hidden run does not block an append, and a run started through the view does", async () => {
    const view = viewAsInherited(await written());
    const result = {
      type: "message",
      message: { role: "tool", toolCallId: "c", name: "t", content: "Done." },
    } as const;
    await view.append("s", [result], { guard: { noOpenRun: true } });
    await view.append("s", [{ type: "run", runId: "own", phase: "started" }]);
    await expect(view.append("s", [result])).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await expect(view.append("s", [say("Hello.")], { guard: { noOpenRun: true } })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
  });

  test("refuses a run with the id of a hidden run", async () => {
    const view = viewAsInherited(await written());
    await expect(view.append("s", [request("later")])).rejects.toMatchObject({ code: "CONFLICT" });
    expect((await view.head("s"))?.openRuns).toEqual([]);
  });

  test("shows the sandbox of a session created through it, and hides the source's sandbox in a fork", async () => {
    const view = viewAsInherited(await written());
    const made = await view.create(createHeader({ id: "mine", sandbox }), { entries: [request("r2")] });
    expect(made).toMatchObject({ header: { sandbox }, openRuns: [{ runId: "r2" }] });
    const source = (await view.head("s"))?.header;
    const fork = await view.fork("s", createHeader({ id: "fork", sandbox: source?.sandbox ?? null }));
    expect(fork).toMatchObject({ header: { sandbox: null }, openRuns: [] });
  });

  test("hides erasure plans that were not written through it, and a rewrite stores no added inherited marks", async () => {
    const store = await written();
    await store.eraser.writeMarks(
      new Map([
        ["erase/session/s", "{}"],
        ["erased/session/x", "2026"],
      ]),
    );
    const view = viewAsInherited(store);
    expect(await view.eraser.readMarks(["erase/session/s", "erased/session/x"])).toEqual(
      new Map([["erased/session/x", "2026"]]),
    );
    expect(await view.eraser.readMarks()).toEqual(new Map());
    const entries: Entry[] = [];
    for await (const entry of view.read("s")) entries.push(entry);
    expect(await view.eraser.replace("s", entries.length, entries)).toBe(true);
    expect(await inheritedMarks(store)).toEqual(entries.map(() => undefined));
  });
});
