import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { scripted } from "../../src/models/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { toolOf } from "../sample-run.ts";
import { type Contract, readContract } from "./server-contract.ts";
import { startTestServer, type TestServer } from "./server-support.ts";

const LONG = "word ".repeat(400);
let server: TestServer;
let api: Contract;
beforeAll(async () => {
  server = await startTestServer({ models: [scripted(["A short summary.", "What the branch did."])] });
  api = await readContract(server);
});
afterAll(async () => server[Symbol.asyncDispose]());

const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);

/** Creates a session with these turns, each with its content as its id; returns the base path of its routes. */
async function sessionWith(...turns: readonly string[]): Promise<string> {
  const { body } = await api.call("POST", "/api/sessions", {});
  const base = `/api/sessions/${body.header.id}`;
  await addTurns(base, turns);
  return base;
}

async function addTurns(base: string, turns: readonly string[]): Promise<void> {
  for (const turnId of turns) await api.call("POST", `${base}/turns`, { turnId, role: "user", content: turnId });
}

test("the path of any leaf is read from its end, page by page", async () => {
  const base = await sessionWith("a", "b", "c", "d", "e");
  const latest = await api.call("GET", `${base}/path?limit=2`);
  expect(ids(latest.body.items)).toEqual(["d", "e"]);
  const middle = await api.call("GET", `${base}/path?limit=2&before=${latest.body.next}`);
  expect(ids(middle.body.items)).toEqual(["b", "c"]);
  const first = await api.call("GET", `${base}/path?limit=2&before=${middle.body.next}`);
  expect(first.body).toMatchObject({ items: [{ id: "a" }], next: null });
  expect(ids((await api.call("GET", `${base}/path?leafId=c`)).body.items)).toEqual(["a", "b", "c"]);
  expect((await api.call("GET", `${base}/path?leafId=nobody`)).body.code).toBe("UNKNOWN_ENTRY");
  expect((await api.call("GET", `${base}/path?before=nobody`)).body.code).toBe("UNKNOWN_ENTRY");
});

test("the entries after another one are read page by page, down to the leaf, and only on its path", async () => {
  const base = await sessionWith("a", "b", "c", "d", "e");
  await api.call("POST", `${base}/leaf`, { entryId: "c" });
  await addTurns(base, ["x", "y"]);
  const pages = [await api.call("GET", `${base}/path?after=a&limit=2`)];
  pages.push(await api.call("GET", `${base}/path?after=${pages[0]?.body.next}&limit=2`));
  expect(pages.map(({ body }) => [ids(body.items), body.next])).toEqual([
    [["b", "c"], "c"],
    [["x", "y"], null],
  ]);
  expect(ids((await api.call("GET", `${base}/path?after=a&limit=1`)).body.items)).toEqual(["b"]);
  expect((await api.call("GET", `${base}/path?after=y`)).body).toEqual({ items: [], next: null });
  expect(ids((await api.call("GET", `${base}/path?after=b&leafId=e`)).body.items)).toEqual(["c", "d", "e"]);
  for (const query of ["after=d", "after=y&leafId=e"]) {
    expect((await api.call("GET", `${base}/path?${query}`)).body, query).toEqual({ items: [], next: null });
  }
  expect((await api.call("GET", `${base}/path?after=a&before=c`)).body.code).toBe("INVALID_REQUEST");
  expect((await api.call("GET", `${base}/path?after=nobody`)).body.code).toBe("UNKNOWN_ENTRY");
});

test("a folded tree leaves out the inside of long chains, and no node that branches, is marked or is to be kept", async () => {
  const base = await sessionWith("start");
  const turns = Array.from({ length: 300 }, (_, index) => `t${index}`);
  const entries = turns.map((id) => ({ type: "message", id, message: { role: "user", content: id } }));
  await api.call("POST", `${base}/entries`, { entries });
  await api.call("PUT", `${base}/labels/t100`, { label: "here" });
  await api.call("POST", `${base}/entries`, { entries: [{ ...entries[0], id: "side" }], onto: "t200" });
  const whole = (await api.call("GET", `${base}/tree`)).body;
  const folded = (await api.call("GET", `${base}/tree?folded=true&keep=t150&keep=t160`)).body;
  const kept = ids(folded.nodes);
  expect(kept.length).toBeLessThan(whole.nodes.length / 2);
  for (const id of ["start", "t100", "t150", "t160", "t200", "t201", "side", "t299"]) expect(kept).toContain(id);
  expect(kept).not.toContain("t50");
  // Only the inside of chains is missing: each gap has the number of nodes left out, and the node above as its parent.
  type Node = { readonly id: string; readonly parentId: string | null; readonly skipped?: number };
  const depth = (nodes: readonly Node[], id: string): number => {
    const node = nodes.find((one) => one.id === id) as Node;
    return (node.parentId === null ? 0 : depth(nodes, node.parentId)) + 1 + (node.skipped ?? 0);
  };
  for (const id of kept) expect(depth(folded.nodes, id), id).toBe(depth(whole.nodes, id));
  expect(folded.activePath).toEqual(whole.activePath.filter((id: string) => kept.includes(id)));
});

test("two paths are compared after their last common entry, in one session or in a session and its fork", async () => {
  const base = await sessionWith("a", "b", "c");
  await api.call("POST", `${base}/leaf`, { entryId: "a" });
  await api.call("PATCH", base, { variables: { set: { colour: "red" } } });
  await addTurns(base, ["x", "y", "z"]);
  const id = base.split("/").at(-1);
  const branches = (await api.call("GET", `${base}/comparison?with=${id}&withLeafId=c&limit=2`)).body;
  expect(branches).toMatchObject({
    ancestorId: "a",
    commonTurns: 1,
    left: { more: true, turns: 3, settings: { variables: { colour: "red" } } },
    right: { more: false, turns: 2, settings: { variables: {} } },
  });
  expect(ids(branches.left.items)[1]).toBe("x");
  expect(ids(branches.right.items)).toEqual(["b", "c"]);
  const fork = (await api.call("POST", `${base}/forks`, { branchName: "try", at: "y" })).body.header.id;
  await addTurns(`/api/sessions/${fork}`, ["f"]);
  const forked = (await api.call("GET", `/api/sessions/${fork}/comparison?with=${id}`)).body;
  expect([forked.ancestorId, ids(forked.left.items), ids(forked.right.items)]).toEqual(["y", ["f"], ["z"]]);
  const other = await sessionWith("q", "r");
  const unrelated = (await api.call("GET", `${other}/comparison?with=${id}&limit=1`)).body;
  expect(unrelated).toMatchObject({ ancestorId: null, commonTurns: 0, left: { more: true, turns: 2 } });
  expect([ids(unrelated.left.items), ids(unrelated.right.items)]).toEqual([["q"], ["a"]]);
  expect((await api.call("GET", `${base}/comparison?with=nobody`)).body.code).toBe("SESSION_NOT_FOUND");
  expect((await api.call("GET", `${base}/comparison?with=${id}&leafId=nobody`)).body.code).toBe("UNKNOWN_ENTRY");
});

test("a timeline has the latest checkpoints with their nodes", async () => {
  const base = await sessionWith();
  const mark = async () => (await api.call("POST", `${base}/checkpoints`, {})).body.id;
  const made = [await mark()];
  for (const turn of ["a", "b", "c"]) {
    await addTurns(base, [turn]);
    made.push(await mark());
  }
  await api.call("POST", `${base}/leaf`, { entryId: "b" });
  const { items, total } = (await api.call("GET", `${base}/timeline`)).body;
  type Placed = {
    readonly id: string;
    readonly stepsBack: number | null;
    readonly node: { readonly id: string } | null;
  };
  expect(items.map(({ id, stepsBack, node }: Placed) => [id, stepsBack, node?.id])).toEqual([
    [made[3], null, "c"],
    [made[2], 0, "b"],
    [made[1], 1, "a"],
    [made[0], null, undefined],
  ]);
  expect(total).toBe(4);
  const latest = (await api.call("GET", `${base}/timeline?limit=1`)).body;
  expect([ids(latest.items), latest.total]).toEqual([[made[3]], 4]);
});

test("the leaf moves, with or without a summary of the branch that is left, and the tree has both branches", async () => {
  const base = await sessionWith("a", "b");
  const moved = await api.call("POST", `${base}/leaf`, { entryId: "a" });
  expect(moved.body.leafId).toBe("a");
  await addTurns(base, ["x"]);
  const summed = await api.call("POST", `${base}/leaf`, { entryId: "b", summary: "Tried x." });
  const tree = (await api.call("GET", `${base}/tree`)).body;
  expect(tree.nodes.map((node: { preview: string; parentId: string }) => [node.preview, node.parentId])).toEqual([
    ["a", null],
    ["b", "a"],
    ["x", "a"],
    ["Tried x.", "b"],
  ]);
  expect(tree.activePath).toEqual(["a", "b", summed.body.leafId]);
  expect(tree).toMatchObject({ leafId: summed.body.leafId, version: summed.body.version });
  expect((await api.call("POST", `${base}/leaf`, { entryId: null })).body.leafId).toBeNull();
  expect((await api.call("POST", `${base}/leaf`, { entryId: "nobody" })).body.code).toBe("UNKNOWN_ENTRY");
});

test("labels and checkpoints are at their nodes, and a pruned branch is not in the tree", async () => {
  const base = await sessionWith("a", "b");
  const labelled = await api.call("PUT", `${base}/labels/a`, { label: "start" });
  expect(labelled.body).toMatchObject({ type: "label", targetId: "a", label: "start" });
  const checkpoint = (await api.call("POST", `${base}/checkpoints`, {})).body;
  await api.call("POST", `${base}/leaf`, { entryId: "a" });
  await addTurns(base, ["x"]);
  expect((await api.call("POST", `${base}/prune`, { entryId: "x" })).body).toMatchObject({
    status: 409,
    code: "ACTIVE_PATH",
  });
  const before = (await api.call("GET", `${base}/tree`)).body.nodes;
  expect(before[0]).toMatchObject({ id: "a", label: "start", role: "user" });
  expect(before[1]).toMatchObject({ id: "b", checkpoints: [checkpoint.id] });
  await api.call("POST", `${base}/prune`, { entryId: "b" });
  expect(ids((await api.call("GET", `${base}/tree`)).body.nodes)).toEqual(["a", "x"]);
  await api.call("PUT", `${base}/labels/a`, { label: null });
  expect((await api.call("GET", `${base}/tree`)).body.nodes[0].label).toBeNull();
});

test("the context has each message with its entry, and a placeholder for a missing result without one", async () => {
  const base = await sessionWith("a");
  const toolCalls = [{ id: "c1", name: "clock", arguments: "{}" }];
  await api.call("POST", `${base}/turns`, { turnId: "call", role: "assistant", content: null, toolCalls });
  const context = (await api.call("GET", `${base}/context`)).body;
  expect(context.parts.map((part: { entryId: string }) => part.entryId)).toEqual(["a", "call", null]);
  expect(context.parts[2].message).toMatchObject({ role: "tool", isError: true });
  expect(context.parts.every(({ tokens }: { tokens: number }) => tokens > 0)).toBe(true);
  expect(context).toMatchObject({ compaction: null, thinkingLevel: "off", model: null });
});

test("a compaction is previewed, made and undone", async () => {
  const base = await sessionWith();
  for (const turnId of ["a", "b", "c"])
    await api.call("POST", `${base}/turns`, { turnId, role: "user", content: LONG });
  const { plan } = (await api.call("GET", `${base}/compaction?keepRecentTokens=300`)).body;
  expect(plan).toMatchObject({ firstKeptEntryId: "c", droppedEntries: 2, keptEntries: 1 });
  expect((await api.call("GET", `${base}`)).body.version).toBe(3);
  const { entry } = (await api.call("POST", `${base}/compact`, { keepRecentTokens: 300 })).body;
  expect(entry).toMatchObject({ type: "compaction", summary: "A short summary.", firstKeptEntryId: "c" });
  const short = (await api.call("GET", `${base}/context`)).body;
  expect(short.compaction).toEqual({ entryId: entry.id, summary: "A short summary.", droppedEntries: 2 });
  expect(short.parts.map((part: { entryId: string }) => part.entryId)).toEqual([entry.id, "c"]);
  expect((await api.call("POST", `${base}/undo-compaction`, {})).body.undone).toEqual([entry.id]);
  expect((await api.call("GET", `${base}/context`)).body.parts).toHaveLength(3);
  expect((await api.call("POST", `${base}/compact`, { model: "no/such" })).body.code).toBe("MODEL_NOT_FOUND");
});

test("the context has the instructions and tools that the last answer was asked with, as recorded", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  await using own = await startTestServer({ manager });
  const call = (await readContract(own)).call;
  const tools = [toolOf("look")];
  const model = scripted(["One.", "Two."]);
  const agent = createAgent({ name: "clerk", prompt: "Be brief.", model, tools, builtInTools: false, temperature: 0 });
  const { sessionId } = await manager.run(agent, "Go.");
  const recorded = { agent: "clerk", instructions: "Be brief.", isDigest: false, temperature: 0, thinkingLevel: null };
  const { setup } = (await call("GET", `/api/sessions/${sessionId}/context`)).body;
  expect(setup).toMatchObject({ ...recorded, entryId: expect.any(String), tools: [tools[0]?.schema] });
  await manager.run(sessionId, agent, "Again.", { recordInstructions: false });
  const after = (await call("GET", `/api/sessions/${sessionId}/context`)).body.setup;
  expect(after).toMatchObject({ ...recorded, instructions: null, isDigest: true, tools: [tools[0]?.schema] });
  expect((await call("GET", `${await sessionWithin(call)}/context`)).body.setup).toBeNull();
});

async function sessionWithin(call: Contract["call"]): Promise<string> {
  return `/api/sessions/${(await call("POST", "/api/sessions", {})).body.header.id}`;
}

test("an entry is left out of the context, shortened and restored, with a preview of both numbers", async () => {
  const base = await sessionWith("a");
  await api.call("POST", `${base}/turns`, { turnId: "b", role: "user", content: LONG });
  const { body: preview } = await api.call("POST", `${base}/edits/preview`, { entryId: "b" });
  expect(preview).toEqual({ tokensSaved: expect.any(Number), prefixLost: 0 });
  expect(preview.tokensSaved).toBeGreaterThan(100);
  const before = (await api.call("GET", base)).body.version;
  const { entry } = (await api.call("POST", `${base}/edits`, { entryId: "b", reason: "long" })).body;
  expect(entry).toMatchObject({ type: "context_edit", targetId: "b", message: null, seq: before });
  const without = (await api.call("GET", `${base}/context`)).body;
  expect(without.parts.map((part: { entryId: string }) => part.entryId)).toEqual(["a"]);
  const edit = { editId: entry.id, reason: "long" };
  expect(without.omitted).toEqual([{ entryId: "b", role: "user", preview: LONG.slice(0, 120), edit }]);
  const undone = await api.call("POST", `${base}/undo-edit`, { editId: entry.id });
  expect(undone.body.entry).toMatchObject({ type: "context_edit", undo: entry.id });
  const message = { role: "user", content: "short" };
  const short = (await api.call("POST", `${base}/edits`, { entryId: "b", message })).body.entry;
  const shown = (await api.call("GET", `${base}/context`)).body;
  expect(shown.parts[1]).toMatchObject({ entryId: "b", message, edit: { editId: short.id } });
  expect(shown.omitted).toEqual([]);
  const other = await api.call("POST", `${base}/edits`, { entryId: "b", message: { ...message, role: "system" } });
  expect(other.body).toMatchObject({ status: 400, code: "INVALID_ENTRY" });
  const nobody = await api.call("POST", `${base}/edits`, { entryId: "nobody" });
  expect(nobody.body).toMatchObject({ code: "UNKNOWN_ENTRY" });
});

test("the report on the prompt cache has the answers with a usage, and the same sums for any limit", async () => {
  const base = await sessionWith("a");
  const answer = (cacheReadTokens: number) => ({
    type: "message",
    message: {
      role: "assistant",
      content: "b",
      provider: "anthropic",
      model: "claude-opus-5",
      usage: {
        inputTokens: 2000,
        outputTokens: 1,
        totalTokens: 2001,
        cacheReadTokens,
        cacheWriteTokens: 2000 - cacheReadTokens,
      },
    },
  });
  await api.call("POST", `${base}/entries`, { entries: [answer(0), answer(2000), answer(500)] });
  const { body } = await api.call("GET", `${base}/cache`);
  expect(body).toMatchObject({
    count: 3,
    inputTokens: 6000,
    readTokens: 2500,
    contextTokens: 2000,
    rewriteFactor: 1.75,
  });
  expect(body.answers.map(({ cause }: { cause: unknown }) => cause)).toEqual([
    { type: "first" },
    null,
    { type: "unknown" },
  ]);
  expect(body.answers[2]).toMatchObject({ expectedTokens: 2000, readTokens: 500, rewrittenTokens: 1500 });
  const one = (await api.call("GET", `${base}/cache?limit=1`)).body;
  expect(one).toEqual({ ...body, answers: body.answers.slice(-1) });
});

test("a compaction that a caller writes keeps the context from an entry of its path, of the same request, or keeps nothing", async () => {
  const base = await sessionWith("a", "b");
  await api.call("POST", `${base}/leaf`, { entryId: "a" });
  await addTurns(base, ["c"]);
  const append = async (firstKeptEntryId: string, more: object = {}) => {
    const compaction = { type: "compaction", id: "k", summary: "s", firstKeptEntryId, tokensBefore: 1 };
    const message = { type: "message", id: "m", message: { role: "user", content: "m" } };
    const { status, body } = await api.call("POST", `${base}/entries`, { entries: [message, compaction], ...more });
    return status === 201 ? status : body.code;
  };
  expect([await append("b"), await append("c", { onto: "b" }), await append("nowhere")]).toEqual([
    "INVALID_ENTRY",
    "INVALID_ENTRY",
    "UNKNOWN_ENTRY",
  ]);
  expect(ids((await api.call("GET", `${base}/path`)).body.items)).toEqual(["a", "c"]);
  for (const kept of ["first", "m", "k"]) {
    const entries = [
      { type: "message", id: "m", message: { role: "user", content: "m" } },
      { type: "compaction", id: "k", summary: "s", firstKeptEntryId: kept, tokensBefore: 1 },
    ];
    const other = await sessionWith("first");
    expect((await api.call("POST", `${other}/entries`, { entries })).status).toBe(201);
  }
});

test("a fork is created, listed, previewed and merged once", async () => {
  const base = await sessionWith("a", "b");
  const fork = await api.call("POST", `${base}/forks`, { branchName: "try", at: "a" });
  expect(fork.status).toBe(201);
  const forkId = fork.body.header.id;
  expect(fork.headers.get("location")).toBe(`/api/sessions/${forkId}`);
  expect(fork.body).toMatchObject({ leafId: "a", header: { forkedFrom: { branchName: "try" } } });
  await addTurns(`/api/sessions/${forkId}`, ["x", "y"]);
  const forks = await api.call("GET", `${base}/forks`);
  expect(forks.body.items.map(({ header }: { header: { id: string } }) => header.id)).toEqual([forkId]);
  const request = { branchId: forkId, strategy: "selective", turnIds: ["y", "nobody"] };
  const preview = await api.call("POST", `${base}/merges`, { ...request, dryRun: true });
  expect(preview.body).toMatchObject({ appended: ["y"], skipped: [{ turnId: "nobody", reason: "unknown" }] });
  expect((await api.call("GET", base)).body.version).toBe(2);
  expect((await api.call("POST", `${base}/merges`, request)).body.appended).toEqual(["y"]);
  expect((await api.call("POST", `${base}/merges`, { branchId: forkId })).body.appended).toEqual(["x"]);
  expect(ids((await api.call("GET", `${base}/path`)).body.items)).toEqual(["a", "b", "y", "x"]);
  const wrong = await api.call("POST", `${base}/merges`, { branchId: forkId, turnIds: ["x"] });
  expect(wrong.body).toMatchObject({ code: "INVALID_REQUEST", problems: [{ path: "body.turnIds" }] });
  await addTurns(`/api/sessions/${forkId}`, ["z"]);
  const summary = await api.call("POST", `${base}/merges`, { branchId: forkId, strategy: "summary" });
  expect(summary.body.appended).toHaveLength(1);
  expect((await api.call("GET", `${base}/path`)).body.items.at(-1).summary).toBe("What the branch did.");
});

test("checkpoints are created, compared, restored and deleted", async () => {
  const base = await sessionWith("a");
  const made = await api.call("POST", `${base}/checkpoints`, { metadata: { why: "before" } });
  expect(made.status).toBe(201);
  const first = made.body;
  expect(made.headers.get("location")).toBe(`/api/checkpoints/${first.id}`);
  await addTurns(base, ["b"]);
  const second = (await api.call("POST", `${base}/checkpoints`, {})).body;
  expect(ids((await api.call("GET", `${base}/checkpoints`)).body.items)).toEqual([first.id, second.id]);
  expect((await api.call("GET", `/api/checkpoints/${first.id}`)).body).toEqual(first);
  const diff = (await api.call("GET", `/api/checkpoints/${first.id}/diff/${second.id}`)).body;
  expect(diff).toMatchObject({ from: { id: first.id }, to: { id: second.id }, files: null });
  expect(diff.state.turns.splices[0].insert[0].turnId).toBe("b");
  expect((await api.call("POST", `/api/checkpoints/${first.id}/restore`)).body.leafId).toBe("a");
  expect((await api.call("DELETE", `/api/checkpoints/${first.id}`)).status).toBe(204);
  expect((await api.call("DELETE", `/api/checkpoints/${first.id}`)).body.code).toBe("CHECKPOINT_NOT_FOUND");
  const other = await sessionWith("q");
  const elsewhere = (await api.call("POST", `${other}/checkpoints`, {})).body;
  const refused = await api.call("GET", `/api/checkpoints/${second.id}/diff/${elsewhere.id}`);
  expect(refused.body).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
});

test("the lineage counts the spending of each session once, and is returned as data or as a diagram", async () => {
  const base = await sessionWith("a");
  const spend = (at: string, tokensUsed: number) =>
    api.call("POST", `${at}/turns`, { role: "assistant", content: "ok", tokensUsed, cost: tokensUsed });
  await spend(base, 10);
  const forkId = (await api.call("POST", `${base}/forks`, { branchName: "try" })).body.header.id;
  await spend(`/api/sessions/${forkId}`, 5);
  const parentId = base.split("/").at(-1);
  const lineage = (await api.call("GET", `/api/sessions/${forkId}/lineage`)).body;
  expect(lineage.edges).toEqual([{ parent: parentId, child: forkId }]);
  expect(lineage.usage.totalTokens).toBe(15);
  expect(lineage.nodes.map((node: { id: string; cost: number }) => [node.id, node.cost])).toEqual([
    [forkId, 5],
    [parentId, 10],
  ]);
  expect((await api.call("POST", `${base}/merges`, { branchId: forkId })).status).toBe(200);
  const merged = (await api.call("GET", `/api/sessions/${forkId}/lineage`)).body;
  expect([merged.usage, merged.nodes.map((node: { cost: number }) => node.cost)]).toEqual([lineage.usage, [5, 10]]);
  expect(lineage.nodes.map((node: { branchName: string | null }) => node.branchName)).toEqual(["try", null]);
  expect((await api.call("GET", `${base}/lineage`)).body.nodes).toHaveLength(2);
  expect((await api.call("GET", `${base}/lineage?format=mermaid`)).text).toMatch(
    /^flowchart TD\n(?:.*\n)* {2}s0 --> s1\n/,
  );
  expect((await api.call("GET", `${base}/lineage?format=dot`)).text).toMatch(/^digraph/);
  expect((await api.call("GET", `${base}/lineage?format=jsonl`)).text.trim().split("\n")).toHaveLength(2);
});

test("a lineage has all parents of the descendants, and only deleted ones without a kind", async () => {
  const made = async (...parents: string[]): Promise<string> => {
    const lineage = { parents, operator: "merge", kind: "op_merge", extras: [] } as const;
    const { header } = await server.manager.store.create(createHeader({ lineage }));
    return header.id;
  };
  const [start, oldest] = [await made(), await made()];
  const other = await made(oldest);
  const merged = await made(start, other, "gone");
  const { nodes } = (await api.call("GET", `/api/sessions/${start}/lineage`)).body;
  const known = new Map(nodes.map((node: { id: string; lineage: unknown }) => [node.id, node.lineage !== null]));
  expect(Object.fromEntries(known)).toEqual({
    [start]: true,
    [oldest]: true,
    [other]: true,
    [merged]: true,
    gone: false,
  });
});

test("analytics add up the turns of one session and of many", async () => {
  const base = await sessionWith("a");
  await api.call("POST", `${base}/turns`, {
    role: "assistant",
    content: "ok",
    provider: "p",
    model: "counted",
    tokensUsed: 3,
    cost: 0.5,
  });
  const one = (await api.call("GET", `${base}/analytics`)).body;
  expect(one).toMatchObject({ totalTurns: 2, totalTokens: 3, totalCost: 0.5, modelsUsed: ["counted"] });
  const rows = (await api.call("GET", "/api/analytics?groupBy=model&groupBy=user")).body.rows;
  expect(rows).toContainEqual(expect.objectContaining({ model: "p/counted", user: "local", cost: 0.5, messages: 1 }));
  expect((await api.call("GET", "/api/analytics?from=yesterday")).body.code).toBe("INVALID_QUERY");
  expect((await api.call("GET", "/api/analytics/calls")).body).toMatchObject({ complete: true });
  expect((await api.call("GET", "/api/analytics/calls?from=yesterday")).body.code).toBe("INVALID_QUERY");
});

test("a search finds words and patterns, and refuses an invalid query", async () => {
  const base = await sessionWith("The needle is here", "another turn");
  const id = base.split("/").at(-1);
  for (const q of ["needle", '"needle is" another', "re:ne{2}dle\\s+is", "another re:needle$|^The"]) {
    const { items } = (await api.call("GET", `/api/search?q=${encodeURIComponent(q)}`)).body;
    expect(items.map((hit: { head: { header: { id: string } } }) => hit.head.header.id)).toEqual([id]);
    expect(items[0].matches[0].entryId).toBe("The needle is here");
  }
  expect((await api.call("GET", "/api/search?q=needle%20missing")).body.items).toEqual([]);
  expect((await api.call("GET", "/api/search?q=needle&status=closed")).body.items).toEqual([]);
  expect((await api.call("GET", "/api/search?q=re:(")).body.code).toBe("INVALID_QUERY");
  expect((await api.call("GET", "/api/search")).body.code).toBe("INVALID_REQUEST");
});

test("a search returns the run that holds a session, as the listing does", async () => {
  const base = await sessionWith("A haystack is searched");
  const id = base.split("/").at(-1) as string;
  const found = async () => (await api.call("GET", "/api/search?q=haystack")).body.items[0].head;
  const { items } = (await api.call("GET", "/api/sessions")).body as { items: { header: { id: string } }[] };
  expect(await found()).toEqual(items.find(({ header }) => header.id === id));
  await (await server.manager.open(id)).appendAll([{ type: "run", runId: "run-1", phase: "started" }]);
  expect((await found()).running).toBeNull();
  await using _lease = await server.manager.store.lease(id, "run-1", 60_000);
  expect((await found()).running).toEqual({ runId: "run-1" });
});

test("a pattern with catastrophic backtracking is aborted, and others are served meanwhile", async () => {
  await sessionWith(`${"a".repeat(60)}!`);
  const endless = api.call("GET", `/api/search?q=${encodeURIComponent("re:^(a+)+$")}`);
  expect((await api.call("GET", "/api/me")).status).toBe(200);
  const refused = await endless;
  expect(refused.body).toMatchObject({ status: 400, code: "INVALID_QUERY" });
  expect(refused.body.detail).toMatch(/takes too long/);
});

test("a session is exported as a file and imported as another session with the same log", async () => {
  const base = await sessionWith("a", "b");
  await api.call("PATCH", base, { name: "Travelling" });
  const file = await api.call("GET", `${base}/export`);
  expect(file.headers.get("content-disposition")).toBe(
    `attachment; filename="session-${base.split("/").at(-1)}.jsonl"`,
  );
  const headers = { "content-type": "application/jsonl" };
  const made = await api.call("POST", "/api/import", file.text, { headers });
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({ name: "Travelling", leafId: "b", header: { userId: "local" } });
  expect(made.body.header.id).not.toBe(base.split("/").at(-1));
  const copy = `/api/sessions/${made.body.header.id}`;
  // The authors in a file are ignored.
  const { items, next } = (await api.call("GET", `${base}/entries`)).body as { items: object[]; next: null };
  const unsigned = items.map(({ by: _by, ...entry }: { by?: string }) => entry);
  expect((await api.call("GET", `${copy}/entries`)).body).toEqual({ items: unsigned, next });
  expect((await api.call("GET", `${base}/export?format=markdown`)).headers.get("content-type")).toMatch(
    /^text\/markdown/,
  );
  expect((await api.call("GET", `${base}/export?format=html`)).text).toMatch(/^<!doctype html>/);
  expect((await api.call("GET", `${base}/export?leafId=nobody`)).body.code).toBe("UNKNOWN_ENTRY");
  for (const body of ["", "nonsense", '{"type":"session"}', `${file.text}{"type":"message"`]) {
    const refused = await api.call("POST", "/api/import", body, { headers });
    expect(refused.body).toMatchObject({ status: 400, code: expect.stringMatching(/^INVALID_/) });
  }
});

test("every operation was called successfully here, except those of runs, chats, AG-UI, MCP, users, workers, blobs and programs and those in the tests of sessions", () => {
  const elsewhere = /^(?:list|delete|undelete|suspend|resume|close)Session|^(?:getState|getEntry|appendEntries)$/;
  const plain = /^(?:getHealth|getCatalogue|getOpenApi)$/;
  const missed = api.operations.filter(({ operationId }) => !api.seen.has(operationId));
  const unexplained = missed.filter(
    ({ operationId, path }) =>
      !elsewhere.test(operationId) &&
      !plain.test(operationId) &&
      !/\/(?:runs|watch|recover|questions|steer|follow-ups|fleet|chat|agui|mcp|users|blobs|programs)(?:\/|$)/.test(
        path,
      ),
  );
  expect(unexplained).toEqual([]);
  expect(api.seen.size).toBeGreaterThan(25);
});
