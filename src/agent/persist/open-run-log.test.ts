import type { SessionHead } from "../../session/log/fold.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { assistant, calls, message, result, usage, user as said } from "../../../test/sample-log.ts";
import { entriesOf, idsOf, nextTurn, openLog as open, sessionOf, typesOf } from "../../../test/sample-run-log.ts";
import { backends } from "../../../test/store-backends.ts";
import { createHeader } from "../../session/log/header.ts";
import { registerSandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import { Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import { assistantRow, Transcript, userRow } from "../../session/value/transcript.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { checkHeadIsFold } from "../../testing/index.ts";
import { SessionTree } from "../../tree/session-tree.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-log-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
  await rm(directory, { recursive: true, force: true });
});

describe.each(backends)("in a $name store", ({ open: openBackend }) => {
  let store: SessionStore;
  beforeEach(async () => {
    store = await openBackend(directory);
  });
  afterEach(() => store.close());

  test("a new session holds the inherited rows, the instructions and the start, then each row on the one before", async () => {
    const user = sessionOf(userRow("one"), assistantRow([], "two"), userRow("three"));
    const { log, request, user: kept } = await open(store, user);
    expect(kept).toBe(user);
    const { id } = request.output;
    expect(log.sessionId).toBe(id);
    expect(typesOf(await entriesOf(store, id))).toEqual(["message", "message", "message", "variables", "started"]);
    const started = (await store.head(id)) as SessionHead;
    expect((await store.settings(id, started.path)).systemPrompt).toBe("be brief");
    const { runId } = request;
    await log.append([message("answer", calls("c1")), { type: "effect", runId, callId: "c1" }]);
    await log.append([message("result", result("c1"))]);
    await log.append([message("last", assistant("done", { usage: usage(3, 1) }))]);
    expect(log.origin()).toEqual({ store, sessionId: id, entryId: "last" });
    await log.end({ phase: "finished", usage: usage(3, 1) });
    const head = await store.head(id);
    expect(head).toMatchObject({ header: { lineage: request.output.lineage, forkedFrom: null }, openRuns: [] });
    const entries = await entriesOf(store, id);
    const messages = entries.filter(({ type }) => type === "message");
    expect(messages.map((entry) => entry.id)).toEqual([...idsOf(user), "answer", "result", "last"]);
    expect(entries.at(-1)).toMatchObject({ type: "run", phase: "finished", runId, usage: usage(3, 1) });
    await checkHeadIsFold(store, id);
  });

  test("rows that the store already has are forked and not written again", async () => {
    const first = await open(store, sessionOf(userRow("one")));
    const reply = assistantRow([], "two");
    await first.log.append([message(reply.id, reply.message)]);
    await first.log.end({ phase: "finished" });
    const source = await store.head(first.request.output.id);
    const question = userRow("three");
    const turn = nextTurn(first.request.output, [reply], first.log);
    const user = Session.derive(turn, turn.transcript.append(question), { lineage: turn.lineage });

    const { log, request } = await open(store, user);
    const head = await store.head(request.output.id);
    expect(head?.header.forkedFrom).toMatchObject({ sessionId: first.request.output.id, entryId: reply.id });
    const entries = await entriesOf(store, request.output.id);
    const own = entries.slice(head?.header.forkedFrom?.version);
    // The instructions are unchanged, so they are not recorded again.
    expect(typesOf(own)).toEqual(["message", "started"]);
    expect(own[0]).toMatchObject({ id: question.id, parentId: reply.id });
    expect(head?.openRuns).toEqual([{ runId: request.runId, state: "started", first: 4 }]);
    expect(await store.head(first.request.output.id)).toEqual(source);
    await log.end({ phase: "finished" });
    await checkHeadIsFold(store, request.output.id);
  });

  test("a run from an entry that is not the leaf forks the session there", async () => {
    await store.create(createHeader({ id: "a", userId: "ann", cwd: "/project", metadata: { tag: 1 } }));
    await store.append("a", [message("one", said("one")), message("two", assistant("two"))]);
    const tree = await SessionTree.on(store, "a");
    const user = await tree.toSession();
    await tree.branch("one");
    await store.append("a", [message("side", assistant("side"))], { onto: "two" });
    const { transcript } = user;
    const beside = Session.of(
      Transcript.withOrigin(transcript.append({ id: "side", message: assistant("side") }), {
        store,
        sessionId: "a",
        entryId: "side",
      }),
    );
    const { request, log } = await open(store, beside, { systemPrompt: null });
    const head = await store.head(request.output.id);
    expect(head).toMatchObject({ leafId: "side", header: { userId: "ann", cwd: "/project", metadata: { tag: 1 } } });
    await log.append([message("mine", assistant("mine"))]);
    const forked = await (await SessionTree.on(store, request.output.id)).toSession();
    expect(idsOf(forked)).toEqual(["one", "two", "side", "mine"]);
    await log.abandon();
  });

  test("a session with the same id and the same rows is forked too, one with other rows is not", async () => {
    const user = sessionOf(userRow("one"), assistantRow([], "two"));
    const entries = user.transcript.rows.map(({ id, message: each }) => message(id, each));
    await store.create(createHeader({ id: user.id }), { entries });
    const same = await open(store, user);
    expect((await store.head(same.request.output.id))?.header.forkedFrom?.sessionId).toBe(user.id);
    const longer = await open(store, Session.of(user.transcript.append(userRow("three")), { id: user.id }));
    expect((await store.head(longer.request.output.id))?.header.forkedFrom?.sessionId).toBe(user.id);
    expect((await store.head(longer.request.output.id))?.path.turnCount).toBe(3);
    await longer.log.abandon();
    await store.append(user.id, [message("more", said("more"))]);
    const changed = Transcript.of(user.transcript.rows.map(({ id }) => ({ id, message: said("changed") })));
    const forged = await open(
      store,
      Session.of(changed.append({ id: "more", message: said("more") }), { id: user.id }),
    );
    expect((await store.head(forged.request.output.id))?.header.forkedFrom).toBeNull();
    await forged.log.abandon();
    const other = await open(store, user);
    expect((await store.head(other.request.output.id))?.header.forkedFrom).toBeNull();
    expect(typesOf(await entriesOf(store, other.request.output.id))).toEqual([
      "message",
      "message",
      "variables",
      "started",
    ]);
    await same.log.abandon();
    await other.log.abandon();
  });

  test("a row that occurs twice in a transcript is stored twice", async () => {
    const one = sessionOf(userRow("one"));
    const merged = Session.of(one.transcript.appendAll(one.transcript));
    const created = await open(store, merged);
    const tree = await SessionTree.on(store, created.request.output.id);
    const twice = await tree.toSession();
    expect(twice.transcript.toMessages()).toEqual(merged.transcript.toMessages());
    expect(new Set(idsOf(twice)).size).toBe(2);
    await created.log.abandon();
    const forked = await open(store, Session.of(twice.transcript.appendAll(twice.transcript)));
    const again = await (await SessionTree.on(store, forked.request.output.id)).toSession();
    expect(again.transcript.toMessages()).toEqual([
      ...merged.transcript.toMessages(),
      ...merged.transcript.toMessages(),
    ]);
    await forked.log.abandon();
  });

  test("a session continues where its own value ended, with only the new rows", async () => {
    await store.create(createHeader({ id: "a" }));
    await store.append("a", [message("one", said("one")), message("two", assistant("two"))]);
    const tree = await SessionTree.on(store, "a");
    const value = await tree.toSession();
    const question = userRow("three");
    const user = Session.derive(value, value.transcript.append(question), { lineage: value.lineage });
    const { log, user: kept, request } = await open(tree, user);
    expect(kept).toBe(user);
    expect(log.sessionId).toBe("a");
    await log.append([message("four", assistant("four"))]);
    await log.end({ phase: "finished" });
    expect(typesOf(await tree.entries())).toEqual([
      ...["message", "message", "message", "variables", "started", "message", "finished"],
    ]);
    expect(tree.leafId).toBe("four");
    expect(await store.head(request.output.id)).toBeNull();
    expect(await store.leaseOf("a")).toBeNull();
  });

  test("a session continues by the ids of its rows if their origin is unknown", async () => {
    await store.create(createHeader({ id: "a" }));
    await store.append("a", [message("one", said("one")), message("two", assistant("two"))]);
    const tree = await SessionTree.on(store, "a");
    const { transcript } = await tree.toSession();
    const user = Session.of(Transcript.of(transcript).append({ id: "three", message: said("three") }), { id: "a" });
    await tree.appendModelChange("p", "m");
    const { log } = await open({ store, sessionId: "a" }, user);
    await log.abandon();
    expect(idsOf(await tree.toSession())).toEqual(["one", "two", "three"]);
    // Another process has continued in the meantime: a session from before that is another branch.
    const late = Session.of(Transcript.of(transcript).append({ id: "late", message: said("late") }), { id: "a" });
    const second = await open({ store, sessionId: "a" }, late);
    await second.log.append([message("answer", assistant("answer"))]);
    await second.log.end({ phase: "finished" });
    expect(idsOf(await tree.toSession())).toEqual(["one", "two", "three"]);
    expect((await tree.getBranch("answer")).filter(({ type }) => type === "message").map(({ id }) => id)).toEqual([
      ...["one", "two", "late", "answer"],
    ]);
  });

  test("a session with other rows comes first, and the run works on both", async () => {
    registerSandboxBackend("log-test", () => {
      throw new Error("never opened");
    });
    const sandbox = { backend: "log-test", spec: { workingDir: "/kept" }, handleId: "h" };
    await store.create(createHeader({ id: "a", sandbox }));
    await store.append("a", [message("one", said("one")), message("two", assistant("two", { usage: usage(5) }))]);
    const question = Session.of(Transcript.of([userRow("three")]), { usage: usage(1) });
    const first = await open({ store, sessionId: "a" }, question);
    const tree = await SessionTree.on(store, "a");
    expect(idsOf(first.user)).toEqual(["one", "two", ...idsOf(question)]);
    expect(idsOf(await tree.toSession())).toEqual(idsOf(first.user));
    expect(first.user).toMatchObject({ usage: usage(6), sandboxPlacement: sandbox });
    expect(first.user.lineage).toMatchObject({ kind: "op_merge", parents: ["a", question.id] });
    await first.log.abandon();
    const placed = Session.of(Transcript.of([userRow("four")])).to("log-test", "/mine");
    const second = await open(tree, placed);
    expect(second.user.sandboxPlacement).toMatchObject({ spec: { workingDir: "/mine" } });
    await second.log.abandon();
  });

  test("a row that is repeated in the input is a separate row", async () => {
    await store.create(createHeader({ id: "a" }));
    await store.append("a", [message("one", said("one")), message("two", assistant("two"))]);
    const again = Session.of(Transcript.of([userRow("zero"), { id: "one", message: said("one") }]));
    const { log, user } = await open({ store, sessionId: "a" }, again);
    expect(user.transcript.toMessages().map(({ content }) => content)).toEqual(["one", "two", "zero", "one"]);
    expect(idsOf(await (await SessionTree.on(store, "a")).toSession())).toEqual(idsOf(user));
    await log.abandon();
  });

  test("an empty session receives the user session unchanged", async () => {
    await store.create(createHeader({ id: "a" }));
    const user = sessionOf(userRow("one"));
    const { user: kept, log } = await open({ store, sessionId: "a" }, user);
    expect(kept).toBe(user);
    expect(idsOf(await (await SessionTree.on(store, "a")).toSession())).toEqual(idsOf(user));
    await log.abandon();
  });

  test("a retry with the same rows continues from them, and moves the leaf", async () => {
    await store.create(createHeader({ id: "a" }));
    await store.append("a", [message("one", said("one"))]);
    const tree = await SessionTree.on(store, "a");
    const value = await tree.toSession();
    const user = Session.derive(value, value.transcript.append({ id: "ask", message: said("ask") }), {});
    const failed = await open(tree, user);
    await failed.log.append([message("bad", calls("c1"))]);
    await failed.log.end({ phase: "failed", error: "no" });
    const retried = await open(tree, user);
    await retried.log.append([message("good", assistant("good"))]);
    await retried.log.end({ phase: "finished" });
    expect(idsOf(await tree.toSession())).toEqual(["one", "ask", "good"]);
    expect((await tree.entries()).filter(({ id }) => id === "ask")).toHaveLength(1);
    expect((await tree.getEntry("bad"))?.parentId).toBeTruthy();
  });

  test("rows follow the run's own last row after someone moves the leaf", async () => {
    await store.create(createHeader({ id: "a" }));
    const tree = await SessionTree.on(store, "a");
    const { log } = await open(tree, sessionOf(userRow("one")));
    await log.append([message("call", calls("c1"))]);
    const elsewhere = await SessionTree.on(store, "a");
    await elsewhere.branch(null);
    await elsewhere.appendMessage(said("new root"), { id: "root" });
    await log.append([message("result", result("c1")), { type: "custom", customType: "t", id: "note" }]);
    await log.append([message("done", assistant("done"))]);
    await log.end({ phase: "finished" });
    expect((await elsewhere.getBranch("done")).map(({ id }) => id).slice(-4)).toEqual([
      "call",
      "result",
      "note",
      "done",
    ]);
    expect((await elsewhere.getLeaf())?.id).toBe("root");
  });

  test("a second run is refused before it writes anything, and can start after the first has released the session", async () => {
    await store.create(createHeader({ id: "a" }));
    const { log } = await open({ store, sessionId: "a" }, sessionOf(userRow("one")));
    const before = await store.head("a");
    await expect(open({ store, sessionId: "a" }, sessionOf(userRow("two")))).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    expect(await store.head("a")).toEqual(before);
    await log.abandon();
    expect(await store.head("a")).toEqual(before);
    await log.abandon();
    await expect(log.append([message("late", said("late"))])).rejects.toMatchObject({ code: "RUN_ENDED" });
    await expect(log.end({ phase: "finished" })).rejects.toMatchObject({ code: "RUN_ENDED" });
    const next = await open({ store, sessionId: "a" }, sessionOf(userRow("two")));
    // The abandoned run has no recorded end, and no other process can record one.
    expect((await entriesOf(store, "a")).filter(({ type }) => type === "run")).toMatchObject([
      { phase: "started" },
      { phase: "failed" },
      { phase: "started" },
    ]);
    await next.log.end({ phase: "cancelled" });
    expect(await store.head("a")).toMatchObject({ openRuns: [] });
  });

  test("a run that failed or was cancelled records that and releases the session", async () => {
    const { log, request } = await open(store, sessionOf(userRow("one")));
    await log.end({ phase: "failed", error: { code: "MODEL_FAILED" }, truncated: true });
    const { id } = request.output;
    expect((await entriesOf(store, id)).at(-1)).toMatchObject({
      phase: "failed",
      error: { code: "MODEL_FAILED" },
      truncated: true,
    });
    expect(await store.leaseOf(id)).toBeNull();
    expect(await store.head(id)).toMatchObject({ closed: false, openRuns: [] });
  });

  test("a run whose lease was taken over writes no more", async () => {
    const { log, request } = await open(store, sessionOf(userRow("one")));
    const { id } = request.output;
    // A live lease cannot be taken away; the lease of a deleted session ends.
    await store.delete(id);
    await store.undelete(id);
    await using _other = await store.lease(id, "another-run", 60_000);
    const before = await store.head(id);
    await expect(log.append([message("late", said("late"))])).rejects.toMatchObject({ code: "LEASE_LOST" });
    await expect(log.end({ phase: "finished" })).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await store.head(id)).toEqual(before);
    expect((await store.leaseOf(id))?.runId).toBe("another-run");
  });

  test("more rows than the limit of one append are all stored", async () => {
    await store.create(createHeader({ id: "a" }), { entries: [message("one", said("one"))] });
    const rows = Array.from({ length: 10_050 }, (_, index) => ({ message: said(String(index)) }));
    const { log } = await open({ store, sessionId: "a" }, Session.of(Transcript.of(rows)));
    expect((await store.head("a"))?.path.turnCount).toBe(10_051);
    await log.abandon();
  });
});

test("a lease is renewed as long as the run is in progress, and expires when the process has died", async () => {
  vi.useFakeTimers();
  const store = openMemoryStore({ clock: () => new Date() });
  const { log, request } = await open(store, sessionOf(userRow("one")));
  await vi.advanceTimersByTimeAsync(10 * 60_000);
  await log.append([message("still here", assistant("yes"))]);
  const { id } = request.output;
  await log.end({ phase: "finished" });
  expect(vi.getTimerCount()).toBe(0);
  const lost = await open(store, sessionOf(userRow("two")));
  vi.setSystemTime(Date.now() + 31_000);
  expect(await store.leaseOf(lost.request.output.id)).toBeNull();
  await expect(lost.log.append([message("late", said("late"))])).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect((await store.head(id))?.leafId).toBe("still here");
});

test.each(["", null, 7, {}])("%j is no place to keep a run", async (persist) => {
  await expect(open(persist as never, sessionOf(userRow("one")))).rejects.toMatchObject({ code: "INVALID_OPTION" });
});

test("a missing session cannot be continued", async () => {
  await expect(open({ store: openMemoryStore(), sessionId: "a" }, sessionOf(userRow("one")))).rejects.toMatchObject({
    code: "SESSION_NOT_FOUND",
  });
});
