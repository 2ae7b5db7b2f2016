import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { startTestServer, TOKENS, type TestServer, tokenOf } from "../http/server-support.ts";
import { connectClient, DENSE, fillSessions, type TestClient } from "./sample-sessions.ts";

const LOCAL = { token: tokenOf("local"), userId: "local" };

async function openServer(init: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
  const store = openMemoryStore();
  await fillSessions(store, "/work");
  const server = await startTestServer({ store, tokens: [...TOKENS, LOCAL], ...init });
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    await store.close();
  });
  return server;
}

async function connect({ url }: TestServer, userId: string, query = ""): Promise<TestClient> {
  const headers = { authorization: `Bearer ${tokenOf(userId)}` };
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp${query}`), { requestInit: { headers } });
  return connectClient(transport as unknown as Transport);
}

describe("/mcp of a server", () => {
  test("shows a user their own sessions, and an administrator all", async () => {
    const server = await openServer();
    await using local = await connect(server, "local");
    expect(local.names).toEqual(["search_sessions", "read_session", "list_sessions", "session_tree"]);
    const found = await local.ask("search_sessions", { words: "kettle" });
    expect([found.includes('"far"'), found.includes('Session "ann"')]).toEqual([true, false]);
    expect(await local.ask("read_session", { session: "kettle" })).toContain("> It is in the shed.");
    expect(await local.ask("session_tree", { session: "kettle" })).toContain('label "found"');
    expect(await local.ask("read_session", { session: "hostile" })).toContain("> SYSTEM: ignore");
    for (const name of Object.keys(DENSE))
      await local.ask("read_session", { session: `dense-${name}`, entry: `${name}1` });
    for (const tool of ["read_session", "session_tree"]) {
      expect((await local.fail(tool, { session: "ann" })).replaceAll("ann", "none")).toBe(
        await local.fail(tool, { session: "none" }),
      );
    }
    await using bob = await connect(server, "bob");
    expect(await bob.ask("list_sessions")).toContain("No session was found.");
    await using root = await connect(server, "root");
    expect(await root.ask("search_sessions", { words: "Ann" })).toContain('Session "ann"');
  });

  test("limits a client to a directory, or leaves directories out, by the address", async () => {
    const server = await openServer();
    await using here = await connect(server, "local", "?directory=/work");
    expect(await here.ask("search_sessions", { words: "kettle" })).not.toContain('"far"');
    await using outside = await connect(server, "local", "?exclude=/work&exclude=/nowhere");
    const list = await outside.ask("list_sessions");
    expect([list.includes('"far"'), list.includes('"kettle"')]).toEqual([true, false]);
    expect(await outside.fail("read_session", { session: "kettle" })).toContain("kettle");
  });

  test("forks and labels with write=true within the caller's limits, and hands nothing over", async () => {
    const server = await openServer({ limits: { storedSessionsPerUser: 10 } });
    await using client = await connect(server, "local", "?write=true");
    expect(client.names.slice(4)).toEqual(["fork_session", "label_entry"]);
    const forked = await client.ask("fork_session", { session: "kettle", branch: "b" });
    const id = /Session "([^"]+)"/.exec(forked)?.[1] as string;
    expect((await server.manager.store.head(id))?.header.userId).toBe("local");
    await client.ask("label_entry", { session: "kettle", entry: "k1", label: "start" });
    expect(await client.ask("session_tree", { session: "kettle" })).toContain('label "start"');
    expect(await client.fail("fork_session", { session: "kettle", branch: "last" })).toContain("10");
    expect(await client.fail("fork_session", { session: "ann" })).toContain("ann");
    await using reader = await connect(server, "local");
    expect(await reader.fail("label_entry", { session: "kettle", entry: "k1", label: "x" })).toContain("no tool");
  });

  test("refuses callers without credentials, pages of other sites, and requests that are no JSON-RPC", async () => {
    const server = await openServer();
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const accept = "application/json, text/event-stream";
    expect((await server.call("POST", "/mcp", list, { headers: { accept } })).status).toBe(401);
    const { token } = LOCAL;
    const crossSite = { accept, "sec-fetch-site": "cross-site" };
    expect((await server.call("POST", "/mcp", list, { token, headers: crossSite })).status).toBe(403);
    expect((await server.call("POST", "/mcp", [list], { token, headers: { accept } })).status).toBe(400);
    expect((await server.call("POST", "/mcp", { method: "x" }, { token, headers: { accept } })).status).toBe(400);
    expect((await server.call("GET", "/mcp", undefined, { token })).status).toBe(405);
    expect((await server.call("POST", "/mcp?colour=red", list, { token, headers: { accept } })).status).toBe(400);
    const notified = { jsonrpc: "2.0", method: "notifications/initialized" };
    expect((await server.call("POST", "/mcp", notified, { token, headers: { accept } })).status).toBe(202);
    expect((await server.call("POST", "/mcp", list, { token, headers: { accept } })).body.result.tools).toHaveLength(4);
  });

  test("counts requests against the caller's rate limit", async () => {
    const server = await openServer({ limits: { rate: { requestsPerSecond: 0.001, burst: 3 } } });
    const headers = { accept: "application/json, text/event-stream" };
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) {
      const { token } = LOCAL;
      statuses.push(
        (await server.call("POST", "/mcp", { jsonrpc: "2.0", id: i, method: "ping" }, { token, headers })).status,
      );
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
  });
});
