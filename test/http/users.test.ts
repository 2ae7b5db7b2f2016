import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { removeUserDirectory, userDirectoryName } from "../../src/workers/user-places.ts";
import { ADA, makeWorld } from "../erase/world.ts";
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
