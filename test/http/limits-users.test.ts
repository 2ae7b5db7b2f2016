import { describe, expect, onTestFinished, test } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import { createServer, type ServerLimits } from "../../src/http/index.ts";
import type { SessionManagerInit } from "../../src/lifecycle/manager-options.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { answering, type Gate, gate, pausing } from "./runs-agents.ts";
import { startTestServer, TOKENS, type TestServer, tokenOf } from "./server-support.ts";

const ANN = { token: tokenOf("ann") };
const BOB = { token: tokenOf("bob") };
const ROOT = { token: tokenOf("root") };

/** A server with tokens, until the test ends. */
async function serve(
  limits: ServerLimits,
  { agents = [], config = {} }: { agents?: readonly Agent[]; config?: SessionManagerInit["config"] } = {},
): Promise<TestServer> {
  const store = openMemoryStore();
  const manager = new SessionManager({ store, config });
  const server = await startTestServer({ manager, agents, tokens: TOKENS, limits: { rate: null, ...limits } });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

async function sessionOf(server: TestServer, who: { readonly token: string }): Promise<string> {
  return (await server.call("POST", "/api/sessions", {}, who)).body.header.id;
}

describe("event streams", () => {
  /** Opens a stream and keeps it open. */
  async function open(server: TestServer, path: string, { token }: { readonly token: string }) {
    const controller = new AbortController();
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${server.url}${path}`, { headers, signal: controller.signal });
    return { response, status: response.status, close: () => controller.abort() };
  }

  test("are limited to streamsPerUser for each user, and closing one makes room", async () => {
    const pause = gate();
    const agent = { ...answering([pausing(["a", "b"], pause)]), name: "helper" };
    const server = await serve({ streamsPerUser: 3 }, { agents: [agent] });
    onTestFinished(() => pause.open());
    const [anns, bobs] = [await sessionOf(server, ANN), await sessionOf(server, BOB)];
    const watch = (id: string, who = ANN) => open(server, `/api/sessions/${id}/watch`, who);
    const run = (await server.call("POST", `/api/sessions/${anns}/runs`, { input: "Go" }, ANN)).body.runId as string;
    const streams = [
      await watch(anns),
      await watch(anns),
      await open(server, `/api/sessions/${anns}/runs/${run}/events`, ANN),
    ];
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const path of [`/api/sessions/${anns}/watch`, `/api/sessions/${anns}/runs/${run}/events`]) {
      const refused = await server.call("GET", path, undefined, ANN);
      expect(refused.body).toMatchObject({ status: 429, code: "TOO_MANY_STREAMS" });
      expect(refused.body.detail).toBe("A user may have 3 event streams open on this server; close one of them first.");
      expect(refused.headers.get("retry-after")).toBe("5");
    }
    const others = [await watch(bobs, BOB), await watch(anns, ROOT)];
    expect(others.map(({ status }) => status)).toEqual([200, 200]);
    streams[0]?.close();
    await expect
      .poll(async () => (await server.call("GET", `/api/sessions/${anns}/watch`, undefined, ANN)).status)
      .toBe(200);
    for (const stream of [...streams, ...others]) stream.close();
  });
});

describe("runs", () => {
  /** A server whose runs wait until they are released, one after the other. */
  async function serveRuns(maxRunsPerUser: number) {
    const gates: Gate[] = Array.from({ length: 12 }, () => gate());
    let next = 0;
    const reply = (...args: Parameters<ReturnType<typeof pausing> & ((...given: never[]) => unknown)>) =>
      (pausing(["a", "b"], gates[next++] as Gate) as (...given: unknown[]) => unknown)(...args);
    const agent = { ...answering(Array(12).fill(reply)), name: "helper" };
    const server = await serve({ maxRunsPerUser }, { agents: [agent] });
    onTestFinished(() => {
      for (const each of gates) each.open();
    });
    const start = (id: string, who: { readonly token: string }, ifBusy?: string) =>
      server.call(
        "POST",
        `/api/sessions/${id}/runs`,
        { input: "Go", ...(ifBusy === undefined ? {} : { ifBusy }) },
        who,
      );
    return { server, gates, start };
  }

  test("run concurrently up to maxRunsPerUser for each user; more wait and start in order", async () => {
    const { server, gates, start } = await serveRuns(2);
    const anns = await Promise.all(Array.from({ length: 4 }, () => sessionOf(server, ANN)));
    const bobs = await sessionOf(server, BOB);
    const [a, b, d, e] = anns as [string, string, string, string];

    const standing = async (id: string): Promise<string[]> => {
      const { items } = (await server.call("GET", `/api/sessions/${id}/runs`, undefined, ANN)).body;
      return (items as { status: string }[]).map(({ status }) => status);
    };
    for (const id of [a, b, d, e]) expect((await start(id, ANN)).status).toBe(202);
    expect((await start(bobs, BOB)).status).toBe(202);
    await expect.poll(async () => (await server.manager.store.leaseOf(bobs)) !== null).toBe(true);
    await expect.poll(() => Promise.all([a, b].map(standing))).toEqual([["running"], ["running"]]);
    expect([await standing(d), await standing(e)]).toEqual([["requested"], ["requested"]]);
    gates[0]?.open();
    await expect.poll(() => standing(d)).toEqual(["running"]);
    expect(await standing(e)).toEqual(["requested"]);
    gates[1]?.open();
    await expect.poll(() => standing(e)).toEqual(["running"]);
  });

  test("that interrupt another run of the same user need no additional slot", async () => {
    const { server, start } = await serveRuns(1);
    const id = await sessionOf(server, ANN);
    const first = (await start(id, ANN)).body.runId as string;
    await expect.poll(async () => (await server.manager.store.leaseOf(id)) !== null).toBe(true);
    expect((await start(id, ANN, "interrupt")).status).toBe(202);
    expect((await server.call("GET", `/api/sessions/${id}/runs/${first}`, undefined, ANN)).body.status).toBe(
      "cancelled",
    );
  });

  test("that wait for a slot when their server shuts down start on the next one", async () => {
    const { server, start } = await serveRuns(1);
    const [a, b] = [await sessionOf(server, ANN), await sessionOf(server, ANN)];
    expect((await start(a, ANN)).status).toBe(202);
    const { runId } = (await start(b, ANN, "enqueue")).body;
    await server.server.close({ drainMs: 0 });
    const { store } = server.manager;
    expect((await store.head(b))?.openRuns).toEqual([{ runId, state: "requested", first: 0 }]);
    const agents = [answering(["Done.", "Done."], [], "helper")];
    await using _next = await createServer({ store, agents });
    await expect.poll(async () => (await store.head(b))?.openRuns).toEqual([]);
  });
});

describe("variables", () => {
  const large = (length: number) => "x".repeat(length);

  test("of a session may take up to variablesBytesMax, with any number of concurrent requests", async () => {
    const server = await serve({}, { config: { variablesBytesMax: 10_000 } });
    const id = await sessionOf(server, ANN);
    const set = (key: string, length: number, who = ANN) =>
      server.call("PATCH", `/api/sessions/${id}`, { variables: { set: { [key]: large(length) } } }, who);
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => set(`k${i}`, 3000)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    const refused = answers.find(({ status }) => status !== 200);
    expect(refused?.body).toMatchObject({ status: 409, code: "CAPACITY" });
    expect(refused?.body.detail).toBe("The limit of 10000 bytes of variables in a session is reached.");
    expect((await set("more", 3000, ROOT)).body.code).toBe("CAPACITY");
    const entry = { type: "variables", set: { more: large(3000) }, unset: [] };
    const appended = await server.call("POST", `/api/sessions/${id}/entries`, { entries: [entry] }, ANN);
    expect(appended.body.code).toBe("CAPACITY");
    const keys = Object.keys(
      (await server.call("GET", `/api/sessions/${id}`, undefined, ANN)).body.path.settings.variables,
    );
    const unset = await server.call("PATCH", `/api/sessions/${id}`, { variables: { unset: keys.slice(1) } }, ANN);
    expect(unset.status).toBe(200);
    expect((await set("more", 3000)).status).toBe(200);
  });

  test("of a prompt, an import, a fork and a merge are limited as well", async () => {
    const server = await serve({}, { config: { variablesBytesMax: 10_000 } });
    const prompt = await server.call("POST", "/api/sessions", { systemPrompt: large(11_000) }, ANN);
    expect(prompt.body.code).toBe("CAPACITY");
    const id = await sessionOf(server, ANN);
    const fork = (await server.call("POST", `/api/sessions/${id}/forks`, { branchName: "b" }, ANN)).body.header.id;
    const set = (at: string, key: string) =>
      server.call("PATCH", `/api/sessions/${at}`, { variables: { set: { [key]: large(6000) } } }, ANN);
    await set(id, "own");
    await set(fork, "other");
    const merge = await server.call("POST", `/api/sessions/${id}/merges`, { branchId: fork }, ANN);
    expect(merge.body.code).toBe("CAPACITY");
    // Writes of the program itself are not limited.
    await server.manager.store.append(id, [{ type: "variables", set: { huge: large(20_000) }, unset: [] }]);
    const before = await server.manager.store.count({ userId: "ann" });
    expect((await server.call("POST", `/api/sessions/${id}/forks`, { branchName: "c" }, ANN)).body.code).toBe(
      "CAPACITY",
    );
    const log = (await server.call("GET", `/api/sessions/${id}/export`, undefined, ANN)).text;
    const headers = { "content-type": "application/jsonl" };
    expect((await server.call("POST", "/api/import", log, { ...ANN, headers })).body.code).toBe("CAPACITY");
    expect(await server.manager.store.count({ userId: "ann" })).toBe(before);
  });

  test("are in no listing, and in the answer for a single session", async () => {
    const server = await serve({});
    const id = await sessionOf(server, ANN);
    await server.call("POST", `/api/sessions/${id}/forks`, { branchName: "b" }, ANN);
    await server.call(
      "PATCH",
      `/api/sessions/${id}`,
      { name: "haystack", variables: { set: { secret: "needle" } } },
      ANN,
    );
    await server.call("POST", `/api/sessions/${id}/forks`, { branchName: "c" }, ANN);
    for (const path of [
      "/api/sessions",
      "/api/search?q=haystack",
      `/api/search?q=${encodeURIComponent("re:hay.*")}`,
      `/api/sessions/${id}/forks`,
      `/api/sessions/${id}/lineage`,
    ]) {
      const answer = await server.call("GET", path, undefined, ROOT);
      expect(answer.status, path).toBe(200);
      expect((answer.body.items ?? answer.body.nodes).length, path).toBeGreaterThan(0);
      expect(answer.text, path).not.toContain("needle");
    }
    const one = await server.call("GET", `/api/sessions/${id}`, undefined, ANN);
    expect(one.body.path.settings.variables).toEqual({ secret: "needle" });
  });
});

describe("forks over HTTP", () => {
  test("count as sessions of their user, also when many are created concurrently; forks of the program do not", async () => {
    const server = await serve({}, { config: { maxSessionsPerUser: 4 } });
    const id = await sessionOf(server, ANN);
    const fork = (from: string, who = ANN) =>
      server.call("POST", `/api/sessions/${from}/forks`, { branchName: "b" }, who);
    const answers = await Promise.all(Array.from({ length: 6 }, () => fork(id)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expect(answer.body).toMatchObject({ status: 409, code: "CAPACITY" });
    }
    // A fork belongs to the user of its source.
    expect((await fork(id, ROOT)).body.code).toBe("CAPACITY");
    expect((await fork(await sessionOf(server, BOB), BOB)).status).toBe(201);
    const made = answers.find(({ status }) => status === 201)?.body.header.id as string;
    await server.call("DELETE", `/api/sessions/${made}`, undefined, ANN);
    expect((await fork(id)).status).toBe(201);
    await server.manager.fork(id, "mine");
    expect(await server.manager.store.count({ userId: "ann" })).toBe(5);
  });

  test("of an ended session stay within the limit", async () => {
    const server = await serve({}, { config: { maxSessionsPerUser: 3 } });
    const id = await sessionOf(server, ANN);
    await server.call("POST", `/api/sessions/${id}/close`, {}, ANN);
    const fork = () => server.call("POST", `/api/sessions/${id}/forks`, { branchName: "b" }, ANN);
    await Promise.all(Array.from({ length: 8 }, fork));
    for (let i = 0; i < 4; i++) await fork();
    expect(await server.manager.store.count({ userId: "ann", status: "active" })).toBe(3);
  });
});

test("invalid limits are refused by name", async () => {
  for (const name of ["bodyBytesMax", "streamsPerUser", "maxRunsPerUser", "bodyValuesMax"] as const) {
    const making = createServer({ store: openMemoryStore(), limits: { [name]: 0 } });
    await expect(making).rejects.toMatchObject({ code: "INVALID_OPTION", message: expect.stringContaining(name) });
  }
});
