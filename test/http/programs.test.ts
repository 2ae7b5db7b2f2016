import { stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import type { ServerInit } from "../../src/http/index.ts";
import { startServer } from "../../src/http/server/start-server.ts";
import { ImportCache } from "../../src/interop/formats/index.ts";
import { ProgramImports, programsIn } from "../../src/interop/formats/program-imports.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { foreignHome } from "../cli/foreign-home.ts";
import { startTestServer, TOKENS, tokenOf } from "./server-support.ts";

const OWN = { token: "token-of-local-0123456789", userId: "local", admin: true };

async function personalServer(init: Partial<ServerInit> = {}) {
  const { directory } = await foreignHome();
  const store = openMemoryStore();
  const ended = new AbortController();
  const failures: unknown[] = [];
  const cache = join(directory, "skein", "imports", "cache.json");
  const imports = new ProgramImports({
    ...{ store, storeUrl: "memory:", userId: "local", signal: ended.signal },
    openCache: () => ImportCache.open(cache),
    onFailure: (error) => failures.push(error),
  });
  const server = await startServer({ store, tokens: [OWN], ...init }, imports);
  onTestFinished(async () => {
    ended.abort();
    await server.close({ drainMs: 0 });
    await imports.ended();
    await store.close();
  });
  const url = await server.listen();
  return { client: createClient({ url, token: OWN.token }), store, cache, failures };
}

test("offers the programs of the machine to a local user, and reads nothing before they are asked for", async () => {
  const { client, store, cache } = await personalServer();
  const { offered, programs } = await client.programs();
  expect([offered, programs]).toEqual([
    true,
    [
      { name: "codex", title: "Codex", sessions: 1, progress: null, exportCommand: null, latestAt: expect.any(String) },
      expect.objectContaining({
        name: "opencode",
        sessions: null,
        exportCommand: expect.stringMatching(/^opencode export /),
      }),
      expect.objectContaining({ name: "pi", sessions: 2, progress: null }),
    ],
  ]);
  expect(Date.now() - Date.parse(programs[0]?.latestAt ?? "")).toBeLessThan(60_000);
  expect(await store.count({})).toBe(0);
  await expect(stat(cache)).rejects.toThrow("ENOENT");
});

test("imports all programs that keep files on one request, and follows them; the list can be filtered by program", async () => {
  const { client, store, failures } = await personalServer();
  const begun = await client.importPrograms();
  expect(begun.programs.map(({ name, progress }) => [name, progress !== null])).toEqual([
    ["codex", true],
    ["opencode", false],
    ["pi", true],
  ]);
  await vi.waitFor(
    async () => {
      const { programs } = await client.programs();
      expect(programs.map(({ progress }) => progress?.state)).toEqual(["following", undefined, "following"]);
      expect(programs.map(({ progress }) => progress?.files)).toEqual([1, undefined, 2]);
    },
    { timeout: 60_000, interval: 100 },
  );
  expect([await store.count({ userId: "local" }), failures]).toEqual([3, []]);
  const ids = async (program: string) => (await client.sessions.list({ program })).items.length;
  expect([await ids("pi"), await ids("codex"), await ids("skein")]).toEqual([2, 1, 0]);
  expect((await client.sessions.list({ program: "pi", limit: 1 })).items).toHaveLength(1);
  const everything = await client.search("a");
  const ofPi = await client.search("a", { program: "pi" });
  expect(everything.items.length).toBeGreaterThan(ofPi.items.length);
});

test.each([
  ["without tokens", {}],
  ["with tokens of several users", { tokens: TOKENS }],
  ["with one token of a user", { tokens: TOKENS.slice(0, 1) }],
  ["with a sign-in of its own", { tokens: [OWN], authenticate: async () => null }],
  ["on an address for others", { tokens: [OWN], host: "0.0.0.0" }],
])("refuses to offer them %s", async (_, init) => {
  const store = openMemoryStore();
  const { signal } = new AbortController();
  const openCache = () => ImportCache.open("none");
  const imports = new ProgramImports({
    store,
    storeUrl: "memory:",
    userId: "local",
    signal,
    openCache,
    onFailure() {},
  });
  await expect(startServer({ store, ...init }, imports)).rejects.toThrow("A server with programs is for one person");
  await store.close();
});

test("a server without them offers nothing, and refuses to import", async () => {
  await foreignHome();
  await using app = await startTestServer({ tokens: TOKENS });
  for (const user of ["ann", "root"]) {
    const options = { token: tokenOf(user) };
    expect((await app.call("GET", "/api/programs", undefined, options)).body).toEqual({ offered: false, programs: [] });
    const refused = await app.call("POST", "/api/programs/import", {}, options);
    expect([refused.status, refused.body.code]).toEqual([403, "FORBIDDEN"]);
  }
});

test("reads a list of programs, in which all names those that keep files", () => {
  expect(programsIn("all")).toEqual(["claude-code", "codex", "openrath", "pi"]);
  expect(programsIn("codex, pi")).toEqual(["codex", "pi"]);
  expect(() => programsIn("cursor")).toThrow('"cursor" is not a format of sessions');
});
