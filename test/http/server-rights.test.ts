import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import type { ApiToken, CallerRights } from "../../src/http/index.ts";
import "../../src/sandboxes/register-built-in.ts";
import { answering } from "./runs-agents.ts";
import { readContract } from "./server-contract.ts";
import { startTestServer, tokenOf } from "./server-support.ts";

type Right = keyof CallerRights;
const RIGHTS: readonly Right[] = ["approve", "run", "files"];

/** Ann with all rights, without one of them, and without any. */
const TOKENS: readonly ApiToken[] = [
  { token: tokenOf("all"), userId: "ann" },
  { token: tokenOf("none"), userId: "ann", may: { approve: false, run: false, files: false } },
  ...RIGHTS.map((right): ApiToken => ({ token: tokenOf(right), userId: "ann", may: { [right]: false } })),
];

async function startLimited() {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "skein-rights-")));
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true, force: true });
  });
  const workspace = join(directory, "workspace");
  await mkdir(workspace);
  await writeFile(join(workspace, "plan.txt"), "train");
  const server = await startTestServer({
    tokens: TOKENS,
    agents: [answering(["Hi."], [], "helper")],
    place: { backend: "local", spec: workspace },
    limits: { rate: null },
  });
  const ann = createClient({ url: server.url, token: tokenOf("all") });
  const session = (await ann.sessions.create({})).header.id;
  await ann.sessions.addTurn(session, { turnId: "t", role: "user", content: "Hello" });
  const fork = (await ann.sessions.fork(session, { branchName: "b" })).header.id;
  const held = async () => (await ann.checkpoints.create(session, { files: true })).id;
  return { server, ann, session, fork, held };
}

test("each right is required exactly where it is needed, and refused by its name", async () => {
  const { server, session, fork, held } = await startLimited();
  await using _ = server;
  const [first, second] = [await held(), await held()];
  // biome-ignore format: a table reads best with one request to a line.
  const asked: [operationId: string, right: Right | null, method: string, path: string, body?: unknown][] = [
    ["startRun", "run", "POST", `/api/sessions/${session}/runs`, { input: "Hi", agent: "nobody" }],
    ["recoverSession", "run", "POST", `/api/sessions/${session}/recover`, {}],
    ["cancelRun", "run", "POST", `/api/sessions/${session}/runs/r/cancel`, {}],
    ["steerRun", "run", "POST", `/api/sessions/${session}/steer`, { content: "x" }],
    ["followUpRun", "run", "POST", `/api/sessions/${session}/follow-ups`, { content: "x" }],
    ["chat", "run", "POST", "/api/chat", { id: session, messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Hi" }] }] }],
    ["runAgUi", "run", "POST", "/agui/helper", { threadId: session, runId: "r", messages: [{ id: "n", role: "user", content: "Hi" }] }],
    ["runAgUi", "approve", "POST", "/agui/helper", { threadId: session, runId: "r", messages: [], resume: [{ interruptId: "q", status: "cancelled" }] }],
    ["stopChat", "run", "POST", `/api/chat/${session}/stop`, {}],
    ["compactSession", "run", "POST", `/api/sessions/${session}/compact`, {}],
    ["mergeBranch", "run", "POST", `/api/sessions/${session}/merges`, { branchId: fork, strategy: "summary", dryRun: true }],
    ["mergeBranch", null, "POST", `/api/sessions/${session}/merges`, { branchId: fork, dryRun: true }],
    ["answerQuestion", "approve", "POST", `/api/sessions/${session}/questions/q`, { approve: true }],
    ["answerQuestion", "approve", "POST", `/api/sessions/${session}/questions/q`, { approve: false }],
    ["createCheckpoint", "files", "POST", `/api/sessions/${session}/checkpoints`, { files: true }],
    ["createCheckpoint", null, "POST", `/api/sessions/${session}/checkpoints`, {}],
    ["restoreCheckpoint", "files", "POST", `/api/checkpoints/${first}/restore`, { files: true }],
    ["restoreCheckpoint", null, "POST", `/api/checkpoints/${first}/restore`, {}],
    ["compareCheckpoints", "files", "GET", `/api/checkpoints/${first}/diff/${second}`],
    ["compareCheckpoints", null, "GET", `/api/checkpoints/${first}/diff/${second}?files=false`],
  ];
  for (const [operationId, right, method, path, body] of asked) {
    for (const who of ["all", "none", ...RIGHTS]) {
      const answer = await server.call(method, path, body, { token: tokenOf(who) });
      const refused = right !== null && (who === "none" || who === right);
      expect([operationId, who, answer.body?.code === "FORBIDDEN"]).toEqual([operationId, who, refused]);
      if (!refused) continue;
      expect(answer.status).toBe(403);
      expect(answer.body.detail).toMatch(new RegExp(`^You may not [^.]+: you do not have the right ${right}\\.$`));
    }
  }
  // All other routes need no right.
  const api = await readContract(server);
  const needy = new Set(asked.map(([operationId]) => operationId));
  for (const { operationId, method, path } of api.operations.filter((one) => !needy.has(one.operationId))) {
    const at = path.replace(/\{(\w+)\}/g, (__, name: string) => (name === "id" ? session : "x"));
    // These routes are for administrators, whatever their rights.
    if (["deleteSession", "importPrograms"].includes(operationId) || path.startsWith("/api/users/")) continue;
    const answer = await server.call(method, at, {}, { token: tokenOf("none") });
    expect([operationId, answer.body?.code]).not.toEqual([operationId, "FORBIDDEN"]);
  }
});

test("a checkpoint with files is deleted only with the right to files, and one without files by anyone", async () => {
  const { server, ann, session, held } = await startLimited();
  await using _ = server;
  const limited = createClient({ url: server.url, token: tokenOf("files") });
  const id = await held();
  await expect(limited.checkpoints.delete(id)).rejects.toMatchObject({ status: 403, code: "FORBIDDEN" });
  expect((await ann.checkpoints.list(session)).map((one) => one.id)).toEqual([id]);
  await limited.checkpoints.delete((await limited.checkpoints.create(session, {})).id);
  await ann.checkpoints.delete(id);
  expect(await ann.checkpoints.list(session)).toEqual([]);
});

test("a caller can read their own rights, and an administrator has no right that was not granted", async () => {
  const admin: ApiToken = { token: tokenOf("root"), userId: "root", admin: true, may: { approve: false } };
  await using server = await startTestServer({ tokens: [...TOKENS, admin] });
  const may = async (who: string) => (await createClient({ url: server.url, token: tokenOf(who) }).me()).may;
  expect(await may("all")).toEqual({ approve: true, run: true, files: true });
  expect(await may("approve")).toEqual({ approve: false, run: true, files: true });
  expect(await may("none")).toEqual({ approve: false, run: false, files: false });
  const refused = await server.call(
    "POST",
    "/api/sessions/s/questions/q",
    { approve: true },
    { token: tokenOf("root") },
  );
  expect(refused.body.code).toBe("FORBIDDEN");
});

test.for([{ aprove: false }, { run: "no" }, [], "run", null])("invalid rights are refused: %j", async (may) => {
  const token = { token: tokenOf("x"), userId: "x", may } as unknown as ApiToken;
  await expect(startTestServer({ tokens: [token] })).rejects.toMatchObject({ code: "INVALID_OPTION" });
});
