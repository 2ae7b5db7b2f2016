import { beforeAll, afterAll, expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { type Client, createClient } from "../../src/http/client/index.ts";
import { createServer, type SkeinServer } from "../../src/http/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { offline } from "../../src/models/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { ALL_RIGHTS } from "../../src/http/caller-init.ts";
import { toolOf } from "../sample-run.ts";

/** The requests that were sent, as `GET /api/sessions/{id}`, with the status of the answer. */
const asked = new Map<string, number>();
let server: SkeinServer;
let client: Client;
let patterns: readonly string[] = [];

beforeAll(async () => {
  const agent = createAgent({
    name: "helper",
    prompt: "Help.",
    model: offline(),
    tools: [toolOf("pay", () => "paid", { needsApproval: () => true })],
    builtInTools: false,
  });
  server = await createServer({ manager: new SessionManager({ store: openMemoryStore() }), agents: [agent] });
  const url = await server.listen();
  client = createClient({
    url,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      const operation = patternOf(`${init.method} ${input.slice(url.length).replace(/\?.*$/, "")}`);
      if (response.ok) asked.set(operation, response.status);
      return response;
    },
  });
  const { paths } = (await client.openapi()) as unknown as { paths: Record<string, Record<string, unknown>> };
  patterns = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
});

afterAll(() => server.close({ drainMs: 0 }));

test("reads the caller, the catalogue and the analytics", async () => {
  expect(await client.health()).toEqual({ status: "ok" });
  expect(await client.me()).toEqual({ userId: "local", admin: true, may: ALL_RIGHTS });
  const catalogue = await client.catalogue();
  expect(await client.programs()).toEqual({ offered: false, programs: [] });
  await expect(client.importPrograms(["pi"])).rejects.toMatchObject({ code: "FORBIDDEN" });
  expect(catalogue.agents).toMatchObject([{ name: "helper", model: "offline/offline", tools: [{ name: "pay" }] }]);
  expect((await client.fleet()).workers).toMatchObject([{ agents: ["helper"], active: 0 }]);
  const { header } = await client.sessions.create({ name: "Sums" });
  await client.sessions.addTurn(header.id, { role: "user", content: "a needle in the hay" });
  expect((await client.search("needle", { limit: 5 })).items.map(({ head }) => head.header.id)).toEqual([header.id]);
  expect((await client.analytics({ groupBy: ["user", "day"] })).rows[0]).toMatchObject({ user: "local" });
  expect(await client.callAnalytics({ userId: "local" })).toMatchObject({ complete: true, tools: [] });
  expect(await client.sessions.analytics(header.id)).toMatchObject({ totalTurns: 1 });
});

test("uploads and downloads an image", async () => {
  const { header } = await client.sessions.create();
  const ref = await client.sessions.uploadBlob(header.id, new Uint8Array([1, 2, 3]));
  expect(await client.sessions.blob(header.id, ref)).toEqual(new Uint8Array([1, 2, 3]));
});

test("lists, changes, closes and undeletes sessions", async () => {
  const made = await client.sessions.create({ name: "One", metadata: { colour: "red" } });
  const { id } = made.header;
  expect(await client.sessions.get(id)).toEqual(made);
  expect(await client.sessions.update(id, { name: "Two", variables: { set: { a: 1 } } })).toMatchObject({
    name: "Two",
  });
  expect(await client.sessions.state(id, { turns: false })).toMatchObject({ name: "Two", variables: { a: 1 } });
  expect((await client.sessions.suspend(id)).status).toBe("suspended");
  expect((await client.sessions.resume(id)).status).toBe("active");
  await client.sessions.delete(id);
  await expect(client.sessions.get(id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", status: 404 });
  expect((await client.sessions.undelete(id)).header.id).toBe(id);
  expect(await client.sessions.close(id, { reason: "Done." })).toMatchObject({
    status: "closed",
    statusReason: "Done.",
  });
  const closed = await client.sessions.list({ status: ["closed", "expired"], limit: 10 });
  expect(closed.items.map((session) => session.header.id)).toEqual([id]);
  for (let index = 0; index < 5; index++) await client.sessions.create();
  const all: string[] = [];
  for await (const session of client.sessions.listAll({ limit: 2 })) all.push(session.header.id);
  expect(all.length).toBeGreaterThanOrEqual(6);
  expect(new Set(all).size).toBe(all.length);
});

test("reads, appends, branches, labels and prunes a log whose entries have unusual ids", async () => {
  const { header } = await client.sessions.create();
  const { id } = header;
  const ids = ["..", ".", "=x", "a/b?c#d", "user:bob", "__proto__", "%2e%2e", "ümläut 🙂"];
  for (const turnId of ids) await client.sessions.addTurn(id, { turnId, role: "user", content: turnId });
  for (const entryId of ids) expect(await client.sessions.entry(id, entryId)).toMatchObject({ id: entryId });
  const { entries } = await client.sessions.append(id, {
    entries: [{ type: "message", id: "side", message: { role: "user", content: "aside" } }],
    onto: "..",
  });
  expect(entries).toMatchObject([{ id: "side", parentId: ".." }]);
  const read: string[] = [];
  for await (const entry of client.sessions.entriesAll(id, { limit: 3 })) read.push(entry.id);
  expect(read).toEqual([...ids, "side"]);
  const backward: string[] = [];
  for await (const entry of client.sessions.entriesAll(id, { limit: 4, reverse: true })) backward.push(entry.id);
  expect(backward).toEqual(read.reverse());
  expect((await client.sessions.path(id, { limit: 3 })).items.map((entry) => entry.id)).toEqual(ids.slice(-3));
  const after = await client.sessions.path(id, { after: ".", limit: 2 });
  expect([after.items.map((entry) => entry.id), after.next]).toEqual([["=x", "a/b?c#d"], "a/b?c#d"]);
  const compared = await client.sessions.compare(id, { with: id, withLeafId: "side" });
  expect(compared).toMatchObject({ ancestorId: "..", right: { items: [{ id: "side" }], turns: 1 } });
  expect(await client.sessions.label(id, "..", "start")).toMatchObject({ type: "label" });
  expect((await client.sessions.tree(id)).nodes.find((node) => node.id === "..")).toMatchObject({ label: "start" });
  await client.sessions.prune(id, "side");
  expect((await client.sessions.moveLeaf(id, { entryId: "=x" })).leafId).toBe("=x");
});

test("reads, compacts and restores a context, forks and merges, and restores checkpoints", async () => {
  const { header } = await client.sessions.create({ systemPrompt: "Be brief." });
  const { id } = header;
  for (let index = 0; index < 12; index++) {
    await client.sessions.addTurn(id, { role: index % 2 === 0 ? "user" : "assistant", content: "word ".repeat(50) });
  }
  expect(await client.sessions.context(id)).toMatchObject({ systemPrompt: "Be brief." });
  expect((await client.sessions.previewCompaction(id, { keepRecentTokens: 100 })).plan).not.toBe(null);
  expect(await client.sessions.compact(id, { model: "offline/offline", keepRecentTokens: 100 })).toMatchObject({
    type: "compaction",
  });
  expect((await client.sessions.undoCompaction(id)).header.id).toBe(id);
  const [long] = (await client.sessions.context(id)).parts;
  const entryId = long?.entryId ?? "";
  const preview = await client.sessions.previewEdit(id, { entryId });
  expect(preview.tokensSaved).toBeGreaterThan(0);
  const edit = await client.sessions.edit(id, { entryId, reason: "old" });
  expect((await client.sessions.context(id)).omitted).toMatchObject([{ entryId, edit: { editId: edit.id } }]);
  expect(await client.sessions.previewEdit(id, { entryId: edit.id })).toMatchObject({
    tokensSaved: -preview.tokensSaved,
  });
  expect(await client.sessions.undoEdit(id, edit.id)).toMatchObject({ undo: edit.id });
  expect(await client.sessions.cache(id)).toMatchObject({ sessionId: id, count: 0, rewriteFactor: null });
  const one = await client.checkpoints.create(id, { metadata: { why: "test" } });
  const branch = await client.sessions.fork(id, { branchName: "try" });
  await client.sessions.addTurn(branch.header.id, { role: "user", content: "on the branch" });
  expect((await client.sessions.forks(id)).items).toHaveLength(1);
  const forks: string[] = [];
  for await (const fork of client.sessions.forksAll(id)) forks.push(fork.header.id);
  expect(forks).toEqual([branch.header.id]);
  expect((await client.sessions.merge(id, { branchId: branch.header.id })).appended).toHaveLength(1);
  const two = await client.checkpoints.create(id);
  expect((await client.checkpoints.list(id)).map((checkpoint) => checkpoint.id)).toEqual(
    expect.arrayContaining([one.id, two.id]),
  );
  expect(await client.checkpoints.timeline(id, { limit: 1 })).toMatchObject({ items: [{ id: two.id }], total: 3 });
  expect(await client.checkpoints.get(one.id)).toEqual(one);
  expect(await client.checkpoints.diff(one.id, two.id)).toMatchObject({ from: { id: one.id }, to: { id: two.id } });
  expect((await client.checkpoints.restore(one.id)).leafId).toBe(one.leafId);
  await client.checkpoints.delete(two.id);
  await expect(client.checkpoints.get(two.id)).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND", status: 404 });
  expect((await client.sessions.lineage(id)).nodes.map((node) => node.id)).toContain(branch.header.id);
  expect(await client.sessions.lineageText(id, "mermaid")).toMatch(/graph|flowchart/);
  const exported = await (await client.sessions.exportFile(id, { format: "jsonl" })).text();
  const copy = await client.sessions.importFile(exported);
  expect(copy.messageCount).toBe((await client.sessions.get(id)).messageCount);
});

test("runs, steers, approves, denies, cancels and follows", async () => {
  const { header } = await client.sessions.create();
  const { id } = header;
  const asking = async (): Promise<string> => {
    const { runId } = await client.runs.start(id, { input: "call pay with {}" });
    for await (const event of client.runs.events(id, runId)) if (event.type === "approval-required") break;
    return runId;
  };
  const first = await asking();
  const [question] = (await client.runs.get(id, first)).questions;
  expect((await client.runs.list({ state: "running" })).items.map(({ runId }) => runId)).toEqual([first]);
  for await (const { runId } of client.runs.listAll({ state: "running" })) expect(runId).toBe(first);
  await client.runs.steer(id, "Thank you.");
  await client.runs.followUp(id, "Bye.");
  await client.runs.approve(id, question?.question ?? "", { note: "Fine." });
  for await (const event of client.runs.events(id, first)) expect(event.type).not.toBe("run-failed");
  const second = await asking();
  const [another] = (await client.runs.get(id, second)).questions;
  await client.runs.deny(id, another?.question ?? "", { reason: "No." });
  expect(["cancelled", "finished"]).toContain((await client.runs.cancel(id, second, { reason: "Enough." })).status);
  expect((await client.runs.ofSession(id)).map(({ runId }) => runId)).toEqual([second, first]);
  expect(await client.runs.recover(id)).toBe(null);
  for await (const entry of client.sessions.watch(id, { after: -1 })) if (entry.seq === 1) break;
});

test("exports and erases users", async () => {
  await client.sessions.create({ userId: "zoe" });
  expect((await client.users.exportArchive("zoe")).size).toBeGreaterThan(512);
  expect(await client.users.budget("zoe")).toEqual({ userId: "zoe", levels: [] });
  expect(await client.users.erase("zoe", { dryRun: true })).toMatchObject({ sessions: 1 });
  expect(await client.users.erase("zoe", { forks: "erase" })).toMatchObject({ sessions: 1 });
  expect((await client.sessions.list({ userId: "zoe" })).items).toEqual([]);
});

test("has called every operation of the server's OpenAPI document", () => {
  // The AI SDK's own client calls the chat routes.
  // Only a server for one person imports programs: test/http/programs.test.ts.
  const operations = patterns.filter((pattern) => / \/(?:api\/(?!chat|programs\/import)|openapi\.json)/.test(pattern));
  expect(operations.length).toBeGreaterThan(40);
  expect(operations.filter((operation) => !asked.has(operation))).toEqual([]);
  // A request that is not in the document would be an undocumented route.
  expect([...asked.keys()].filter((operation) => operation.startsWith("?"))).toEqual([]);
});

/** The operation of the document that matches a request. */
function patternOf(request: string): string {
  const segments = request.split("/");
  const found = patterns.find((pattern) => {
    const names = pattern.split("/");
    return names.length === segments.length && names.every((name, i) => name.startsWith("{") || name === segments[i]);
  });
  return found ?? (request.includes("/openapi.json") ? "GET /openapi.json" : `? ${request}`);
}
