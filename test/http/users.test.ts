import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { createAgent } from "../../src/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { removeUserDirectory, userDirectoryName } from "../../src/workers/user-places.ts";
import { ADA, makeWorld } from "../erase/world.ts";
import { modelOf, saying } from "../sample-run.ts";
import { readContract } from "./server-contract.ts";
import { startTestServer, TOKENS, tokenOf } from "./server-support.ts";

const WORD = "quetzalcoatlus";
const ADA_TOKEN = { token: "token-of-ada-0123456789", userId: ADA };
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-users-"));
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

test("lets administrators preview an erasure, erase a user, and find nothing afterwards", async () => {
  const store = openMemoryStore();
  const { sessions } = await makeWorld(store, WORD);
  await using server = await startTestServer({ store, tokens: [...TOKENS, ADA_TOKEN] });
  const { users } = createClient({ url: server.url, token: tokenOf("root") });
  expect(await users.erase(ADA, { dryRun: true })).toMatchObject({ sessions });
  expect(await store.count({ userId: ADA })).toBe(sessions - 1);
  expect(await users.erase(ADA, { forks: "erase" })).toMatchObject({ sessions, keptByForks: [] });
  const { operations } = await readContract(server);
  const token = tokenOf("root");
  for (const { path, method, parameters } of operations) {
    if (method !== "GET" || path.includes("{") || path.includes("events")) continue;
    const query = parameters.some(({ name }) => name === "q") ? `?q=${WORD.slice(0, 6)}` : "";
    expect([path, (await server.call("GET", `${path}${query}`, undefined, { token })).text.includes(WORD)]).toEqual([
      path,
      false,
    ]);
  }
});

test("refuses everyone else, and exports to each user only their own data", async () => {
  const store = openMemoryStore();
  await makeWorld(store, WORD);
  await using server = await startTestServer({ store, tokens: [...TOKENS, ADA_TOKEN] });
  const path = `/api/users/${encodeURIComponent(ADA)}`;
  const { call } = await readContract(server);
  for (const method of ["DELETE", "GET"]) {
    const asked = method === "GET" ? `${path}/export` : path;
    expect((await call(method, asked, undefined, { token: tokenOf("bob") })).status).toBe(403);
  }
  const archive = await createClient({ url: server.url, token: ADA_TOKEN.token }).users.exportArchive(ADA);
  expect(await archive.text()).toContain(WORD);
  expect((await call("DELETE", path, undefined, { token: ADA_TOKEN.token })).status).toBe(403);
});

test("removes the directory that the server made for a user, and no other", async () => {
  const [own, other] = [join(directory, userDirectoryName(ADA)), join(directory, userDirectoryName("bob"))];
  for (const each of [own, other]) {
    await mkdir(each);
    await writeFile(join(each, "file.txt"), WORD);
  }
  await removeUserDirectory({ backend: "local", spec: { workingDir: own } }, ADA);
  await removeUserDirectory({ backend: "local", spec: { workingDir: other } }, ADA);
  await removeUserDirectory({ backend: "local", spec: { workingDir: directory } }, ADA);
  expect(await stat(own).catch(() => null)).toBeNull();
  expect((await stat(join(other, "file.txt"))).size).toBe(WORD.length);
});

test("shows users their own remaining budget only, in a route and with each run", async () => {
  const store = openMemoryStore();
  const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100 };
  const model = modelOf(async () => saying("Done.", { usage, cost: 0.5 }));
  const agents = [createAgent({ name: "helper", prompt: "Help.", model, builtInTools: false })];
  const budgets = [{ per: "user", window: "1d", cost: 1, warnAt: 0.5 }] as const;
  const manager = new SessionManager({ store, budgets });
  await using server = await startTestServer({ manager, agents, tokens: [...TOKENS, ADA_TOKEN] });
  const client = createClient({ url: server.url, token: ADA_TOKEN.token });
  const level = { window: "1d", unit: "cost", limit: 1, reserved: 0, warnAt: 0.5, movesOnAt: null };
  expect(await client.users.budget(ADA)).toEqual({ userId: ADA, levels: [{ ...level, spent: 0 }] });
  const { call } = await readContract(server);
  const { header } = await client.sessions.create({});
  const { id } = header;
  for (const [index, spent] of [0, 0.5, 1].entries()) {
    const token = ADA_TOKEN.token;
    const { status, headers, body } = await call(
      "POST",
      `/api/sessions/${id}/runs`,
      { input: `Ask ${index}.` },
      { token },
    );
    expect([status, headers.get("x-skein-budget")]).toEqual([202, `1d;unit=cost;limit=1;spent=${spent};reserved=0`]);
    const { runId } = body as { readonly runId: string };
    await expect.poll(async () => (await client.runs.get(id, runId)).status).toMatch(/finished|failed/);
    const run = await client.runs.get(id, runId);
    expect(run.problem?.code ?? null).toBe(spent < 1 ? null : "BUDGET_EXCEEDED");
    if (spent < 1)
      await expect.poll(async () => (await client.users.budget(ADA)).levels[0]?.spent).toBeGreaterThan(spent);
  }
  expect((await client.users.budget(ADA)).levels).toMatchObject([
    { spent: 1, movesOnAt: expect.stringMatching(/:00:00.000Z$/) },
  ]);
  const others = { path: `/api/users/${encodeURIComponent(ADA)}/budget`, statuses: { bob: 403, root: 200 } };
  for (const [user, status] of Object.entries(others.statuses))
    expect((await call("GET", others.path, undefined, { token: tokenOf(user) })).status).toBe(status);
});
