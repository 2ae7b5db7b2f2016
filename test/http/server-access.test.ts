import { describe, expect, test } from "vitest";
import { createServer, createToken, hashToken } from "../../src/http/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { scripted } from "../../src/models/index.ts";
import { createAgent } from "../../src/agent/agent.ts";
import { ALL_RIGHTS } from "../../src/http/caller-init.ts";
import { type Contract, type Operation, readContract, statusOfForeign } from "./server-contract.ts";
import { startTestServer, TOKENS, type TestServer, tokenOf } from "./server-support.ts";

const ann = { token: tokenOf("ann") };
const bob = { token: tokenOf("bob") };
const root = { token: tokenOf("root") };

async function startGuarded(): Promise<{ server: TestServer; api: Contract }> {
  const agent = createAgent({ name: "helper", prompt: "Help.", model: scripted(["Hi."]) });
  const server = await startTestServer({ tokens: TOKENS, agents: [agent], limits: { rate: null } });
  return { server, api: await readContract(server) };
}

/** Valid bodies, so that a refusal can only be about the session's user. */
const BODIES: Readonly<Record<string, unknown>> = {
  addTurn: { role: "user", content: "Mine now" },
  appendEntries: { entries: [{ type: "custom", customType: "x" }] },
  moveLeaf: { entryId: null },
  setLabel: { label: "x" },
  pruneBranch: { entryId: "t" },
  editContext: { entryId: "t", message: null },
  previewEdit: { entryId: "t", message: null },
  undoEdit: { editId: "t" },
  selectBranch: { entryId: "t" },
  forkSession: { branchName: "x" },
  startRun: { input: "Hi", agent: "helper" },
  approveCall: { approve: true },
  answerQuestion: { approve: true },
  decideApproval: { approve: true },
  steerRun: { content: "x" },
  followUpRun: { content: "x" },
};

/** The path of an operation with these ids. */
function pathOf({ path }: Operation, ids: { session: string; checkpoint: string; run: string }): string {
  const kinds: Readonly<Record<string, string>> = {
    id: ids.session,
    checkpointId: ids.checkpoint,
    from: ids.checkpoint,
    to: ids.checkpoint,
    runId: ids.run,
    agent: "helper",
  };
  return path.replace(/\{(\w+)\}/g, (_, name: string) => kinds[name] ?? "t");
}

test("on every route another user's session is indistinguishable from a missing one, and is not changed", async () => {
  const { server, api } = await startGuarded();
  await using _ = server;
  const session = (await api.call("POST", "/api/sessions", { name: "Secret plan" }, ann)).body.header.id;
  await api.call("POST", `/api/sessions/${session}/turns`, { turnId: "t", role: "user", content: "Secret" }, ann);
  const checkpoint = (await api.call("POST", `/api/sessions/${session}/checkpoints`, {}, ann)).body.id;
  const run = (await api.call("POST", `/api/sessions/${session}/runs`, { input: "Hi", agent: "helper" }, ann)).body
    .runId;
  await expect
    .poll(async () => (await api.call("GET", `/api/sessions/${session}/runs/${run}`, undefined, ann)).body.status)
    .toBe("finished");
  const before = (await api.call("GET", `/api/sessions/${session}/entries`, undefined, ann)).body;
  const targets = api.operations.filter(({ path }) => path.includes("{"));
  expect(targets.length).toBeGreaterThan(35);
  const missing = { session: session.replace(/.$/, "Z"), checkpoint: `${checkpoint}Z`, run: `${run}Z` };
  for (const operation of targets) {
    const ask = async (ids: typeof missing) => {
      const inBody: Readonly<Record<string, unknown>> = {
        mergeBranch: { branchId: session },
        runAgUi: { threadId: ids.session, runId: "r", messages: [] },
      };
      const body = BODIES[operation.operationId] ?? inBody[operation.operationId] ?? {};
      const [type = "application/json"] = Object.keys(operation.requestBody?.content ?? {});
      const asBob = { ...bob, headers: { "content-type": type } };
      const { status, body: problem, headers } = await api.call(operation.method, pathOf(operation, ids), body, asBob);
      const text = JSON.stringify(problem)
        .replaceAll(ids.session, "S")
        .replaceAll(ids.checkpoint, "C")
        .replaceAll(ids.run, "R");
      return { operation: operation.operationId, status, text, names: [...headers.keys()].sort() };
    };
    const refused = await ask({ session, checkpoint, run });
    expect(refused).toEqual(await ask(missing));
    expect(refused.status, operation.operationId).toBe(statusOfForeign(operation));
    expect(refused.text).not.toContain("Secret");
  }
  expect((await api.call("GET", `/api/sessions/${session}/entries`, undefined, ann)).body).toEqual(before);
});

test("a user sees their own sessions in listings, searches, totals and forks, and an administrator all", async () => {
  const { server, api } = await startGuarded();
  await using _ = server;
  const make = async (who: { token: string }, content: string) => {
    const { body } = await api.call("POST", "/api/sessions", {}, who);
    await api.call("POST", `/api/sessions/${body.header.id}/turns`, { role: "user", content }, who);
    return body.header.id as string;
  };
  const [mine, theirs] = [await make(ann, "shared word"), await make(bob, "shared word")];
  const listed = async (path: string, who: { token: string }) =>
    (await api.call("GET", path, undefined, who)).body.items
      .map(
        (item: { header?: { id: string }; head?: { header: { id: string } } }) =>
          (item.header ?? item.head?.header)?.id,
      )
      .sort();
  // Even if another user's session is newer: hidden sessions take no place on a page.
  expect(await listed("/api/search?q=shared&limit=1", ann)).toEqual([mine]);
  for (const path of ["/api/sessions", "/api/search?q=shared", "/api/search?q=re:shared"]) {
    expect(await listed(path, ann)).toEqual([mine]);
    expect(await listed(path, root)).toEqual([mine, theirs].sort());
    expect(await listed(`${path}${path.includes("?") ? "&" : "?"}userId=bob`, ann)).toEqual([]);
  }
  const sums = async (query: string, who: { token: string }) =>
    (await api.call("GET", `/api/analytics?groupBy=user${query}`, undefined, who)).body.rows.map(
      (row: { user: string }) => row.user,
    );
  expect(await sums("", ann)).toEqual(["ann"]);
  expect(await sums("&userId=bob", ann)).toEqual([]);
  expect(await sums("", root)).toEqual(["ann", "bob"]);
  const looked = async (query: string, who: { token: string }) =>
    (await api.call("GET", `/api/analytics/calls${query}`, undefined, who)).body.sessions;
  expect(await looked("", ann)).toBe(1);
  expect(await looked("?userId=bob", ann)).toBe(0);
  expect(await looked("", root)).toBe(2);
  await api.call("DELETE", `/api/sessions/${theirs}`, undefined, bob);
  expect(await listed("/api/sessions?deleted=true", ann)).toEqual([]);
  expect((await api.call("POST", `/api/sessions/${theirs}/undelete`, {}, ann)).status).toBe(404);
  expect((await api.call("POST", `/api/sessions/${theirs}/undelete`, {}, root)).status).toBe(200);
});

test("only an administrator creates a session for another user", async () => {
  const { server, api } = await startGuarded();
  await using _ = server;
  expect((await api.call("POST", "/api/sessions", { userId: "bob" }, ann)).body).toMatchObject({
    status: 403,
    code: "FORBIDDEN",
  });
  expect((await api.call("POST", "/api/sessions", { userId: "bob" }, root)).body.header.userId).toBe("bob");
  expect((await api.call("GET", "/api/me", undefined, root)).body).toEqual({
    userId: "root",
    admin: true,
    may: ALL_RIGHTS,
  });
});

test("the place of tools and the parents in an imported log are ignored, also for an administrator", async () => {
  const { server, api } = await startGuarded();
  await using _ = server;
  const secret = (await api.call("POST", "/api/sessions", {}, bob)).body;
  const place = { backend: "local", spec: { workingDir: "/" }, handleId: null };
  const { id } = secret.header;
  const header = {
    ...secret.header,
    sandbox: place,
    forkedFrom: { sessionId: id, entryId: null, version: 0 },
    lineage: { parents: [id], operator: "fork", kind: "op_fork", extras: [] },
  };
  const stamp = { parentId: null, timestamp: "2026-01-01T00:00:00.000Z", seq: 0 };
  const run = { type: "run", id: "r", ...stamp, runId: "r", phase: "started", sandbox: place };
  const file = `${JSON.stringify(header)}\n${JSON.stringify(run)}\n`;
  const headers = { "content-type": "application/jsonl" };
  for (const [who, userId, counts] of [
    [ann, "ann", false],
    [root, "root", true],
  ] as const) {
    const made = await api.call("POST", "/api/import", file, { ...who, headers });
    expect(made.body.header).toMatchObject({ userId, sandbox: null, forkedFrom: null, lineage: { parents: [] } });
    expect(made.body.header.inherited).toEqual({ entries: 2, counts });
    const entries = await api.call("GET", `/api/sessions/${made.body.header.id}/entries`, undefined, who);
    const { forkedFrom, lineage } = header;
    expect(entries.body.items[1]).toMatchObject({
      type: "custom",
      customType: "skein.imported",
      data: { sandbox: place, forkedFrom, lineage },
    });
  }
});

describe("a token", () => {
  test("is needed on every route except health and the document, and an unknown token is refused like a missing one", async () => {
    const { server, api } = await startGuarded();
    await using _ = server;
    const open = [];
    for (const operation of api.operations) {
      const path = pathOf(operation, { session: "s", checkpoint: "c", run: "r" });
      const { status, body, headers } = await server.call(operation.method, path, {});
      if (status === 200) open.push(operation.operationId);
      else expect({ status, code: body.code }, operation.operationId).toEqual({ status: 401, code: "UNAUTHORIZED" });
      if (status !== 200) expect(headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
    expect(open.sort()).toEqual(["getHealth", "getOpenApi"]);
    for (const authorization of ["Bearer wrong", `Basic ${tokenOf("ann")}`, "Bearer", `Bearer ${tokenOf("ann")} x`]) {
      const answer = await server.call("GET", "/api/me", undefined, { headers: { authorization } });
      expect(answer.body).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
      expect(answer.text).not.toContain(tokenOf("ann"));
    }
  });

  test("is stored as its hash, and works until it expires", async () => {
    const [fresh, stale] = [createToken(), createToken()];
    expect(fresh).not.toBe(stale);
    await using server = await startTestServer({
      tokens: [
        { hash: hashToken(fresh), userId: "ann", expiresAt: "2999-01-01T00:00:00.000Z" },
        { hash: hashToken(stale), userId: "ann", expiresAt: "2020-01-01T00:00:00.000Z" },
      ],
    });
    expect((await server.call("GET", "/api/me", undefined, { token: fresh })).body).toEqual({
      userId: "ann",
      admin: false,
      may: ALL_RIGHTS,
    });
    const expired = await server.call("GET", "/api/me", undefined, { token: stale });
    expect(expired.body).toMatchObject({ status: 401, code: "TOKEN_EXPIRED" });
    expect((await server.call("GET", "/api/me", undefined, { token: hashToken(fresh) })).status).toBe(401);
  });

  test("that is too weak is refused at the start, and an empty list refuses all callers", async () => {
    await using store = openMemoryStore();
    for (const token of [
      { token: "short", userId: "ann" },
      { hash: "abc", userId: "ann" },
      { token: createToken(), userId: "" },
      { token: createToken(), userId: "ann", expiresAt: "tomorrow" },
    ]) {
      await expect(createServer({ store, tokens: [token] })).rejects.toMatchObject({
        code: expect.stringMatching(/^INVALID_/),
      });
    }
    await using server = await startTestServer({ tokens: [] });
    expect((await server.call("GET", "/api/me")).status).toBe(401);
  });
});
