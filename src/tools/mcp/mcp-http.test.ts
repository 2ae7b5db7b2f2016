import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Server as Mcp } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ToolContent, ToolContext } from "../../agent/tools/tool.ts";
import { Session } from "../../session/value/session.ts";
import { type McpTools, mcpTools, openMcpTools } from "./index.ts";

const program = new URL("../../../test/mcp-server.mjs", import.meta.url).href;
const { makeServer }: { makeServer(options: { listed: readonly object[] }): Mcp } = await import(program);

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe("the tools of a server over HTTP", () => {
  test("are listed and called, with the headers of the options, and the session is ended on close", async () => {
    const { url, seen } = await serve();
    const server = await openMcpTools({ url, headers: { authorization: "Bearer k" } }, { prefix: "web_" });
    expect(await call(server, "web_echo", { text: "over http" })).toEqual({ content: "over http" });
    await server.close();
    expect(new Set(seen.map(({ authorization }) => authorization))).toEqual(new Set(["Bearer k"]));
    expect(seen.at(-1)?.method).toBe("DELETE");
  });

  test.for(["end", "destroy"] as const)("fail soon after the response stream breaks off: %s", async (cut) => {
    const { url } = await serve([], { cut });
    const server = await openMcpTools({ url });
    closing.push(() => server.close());
    const { content, isError } = await call(server, "echo");
    expect(isError).toBe(true);
    expect(JSON.parse(content as string).message).toBe(
      'The MCP server did not answer the call of "echo": the connection broke off before the answer.',
    );
  });

  test("fail if no server listens, or another kind of server", async () => {
    const { url, http } = await serve();
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
    await expect(openMcpTools({ url })).rejects.toMatchObject({ code: "INVALID_TOOL" });
    const other = await listen(createServer((_request, response) => response.end("hello")));
    await expect(openMcpTools({ url: `${other.url}?key=secret` })).rejects.toSatisfy(
      (error: Error) =>
        error.message.startsWith(`The MCP server "${other.url}" does`) && !error.message.includes("secret"),
    );
    await expect(openMcpTools({ url: "nowhere" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });

  test("come from the caller's own client, which stays open", async () => {
    const { url } = await serve();
    const client = new Client({ name: "own", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Parameters<Client["connect"]>[0]);
    closing.push(() => client.close());
    const [first] = await mcpTools(client, { prefix: "own_" });
    expect(first?.schema.name).toBe("own_echo");
    await using server = await openMcpTools({ client });
    await server.close();
    expect(await first?.execute({ text: "mine" }, contextOf())).toEqual({ content: "mine" });
  });
});

describe("the tool list of a malicious server", () => {
  test("gets names that every provider accepts, all different, and calls map to the right tools", async () => {
    const names = [
      "a b",
      "a_b",
      "a/b",
      "ä".repeat(200),
      "x".repeat(65),
      "x".repeat(66),
      "\u0000\n",
      "💥",
      "../../etc",
      "__proto__",
    ];
    const { url } = await serve(names.map((name) => ({ name, inputSchema: { type: "object" } })));
    const server = await openMcpTools({ url }, { prefix: "evil:" });
    closing.push(() => server.close());
    const given = server.tools.map(({ schema }) => schema.name);
    expect(server.refused).toEqual([]);
    expect(new Set(given).size).toBe(given.length);
    for (const name of given) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    const answers = await Promise.all(given.slice(-names.length).map((name) => call(server, name)));
    expect(answers.map(({ content }) => content)).toEqual(names.map((name) => `called ${name}`));
  });

  test("omits tools that cannot be offered to a model, with the reason", async () => {
    const deep = JSON.parse(`${'{"type":"object","a":'.repeat(300)}1${"}".repeat(300)}`);
    const listed = [
      { name: "taken", inputSchema: { type: "object" } },
      { name: "taken", inputSchema: { type: "object" } },
      { name: "text", inputSchema: { type: "string" } },
      { name: "list", inputSchema: [] },
      { name: "deep", inputSchema: deep },
      { name: "huge", inputSchema: { type: "object", description: "x".repeat(70_000) } },
      { name: "proto", inputSchema: JSON.parse('{"type":"object","properties":{"__proto__":{}}}') },
      { name: 7, inputSchema: { type: "object" } },
      { name: "plain" },
      { name: "wordy", description: "d".repeat(1_000_000), inputSchema: {} },
    ];
    const { url } = await serve(listed);
    const server = await openMcpTools({ url });
    closing.push(() => server.close());
    expect(server.refused.map(({ name }) => name)).toEqual(["taken", "text", "list", "deep", "huge", "proto", "7"]);
    expect(server.refused[0]?.problem).toBe('another tool is called "taken" already');
    const kept = server.tools.filter(({ schema }) => ["taken", "plain", "wordy"].includes(schema.name));
    expect(kept.map(({ schema }) => schema.parameters.type)).toEqual(["object", "object", "object"]);
    expect(kept.at(-1)?.schema.description.length).toBeLessThan(10_000);
    const client = new Client({ name: "own", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Parameters<Client["connect"]>[0]);
    closing.push(() => client.close());
    await expect(mcpTools(client)).rejects.toMatchObject({
      code: "INVALID_TOOL",
      message: expect.stringMatching(/^The tool "taken" cannot be used: .*\.$/),
    });
  });

  test("is bounded, even if its pages do not end", async () => {
    const { url } = await serve([], { endless: true });
    await expect(openMcpTools({ url })).rejects.toMatchObject({
      code: "INVALID_TOOL",
      message: expect.stringContaining("more than 1000 tools or 100 pages"),
    });
  });
});

test("says which package to install when the SDK is missing", async () => {
  const name = "@modelcontextprotocol/sdk/client/stdio.js";
  vi.doMock(name, () => {
    throw new Error("Cannot find package");
  });
  const opening = openMcpTools({ url: "http://127.0.0.1:9/mcp" });
  await expect(opening).rejects.toMatchObject({ code: "DRIVER_MISSING" });
  await expect(opening).rejects.toThrow("install the package @modelcontextprotocol/sdk, version 1.32");
  vi.doUnmock(name);
  vi.resetModules();
});

interface Served {
  readonly url: string;
  readonly http: Server;
  readonly seen: { readonly method: string; readonly authorization: string | undefined }[];
}

async function serve(
  listed: readonly object[] = [],
  { endless = false, cut }: { endless?: boolean; cut?: "end" | "destroy" } = {},
): Promise<Served> {
  const seen: Served["seen"] = [];
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    seen.push({ method: request.method ?? "", authorization: request.headers.authorization });
    const body = request.method === "POST" ? JSON.parse(await textOf(request)) : undefined;
    const known = transports.get(String(request.headers["mcp-session-id"]));
    if (endless && body?.method === "tools/list") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id: body.id, result: { tools: [], nextCursor: "again" } }));
      return;
    }
    if (cut !== undefined && body?.method === "tools/call") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": the answer follows\n\n", () => response[cut]());
      return;
    }
    if (known === undefined && body?.method !== "initialize") return void response.writeHead(404).end();
    await (known ?? (await connected(transports, listed))).handleRequest(request, response, body);
  };
  const { url, http } = await listen(createServer((request, response) => void handle(request, response)));
  closing.push(() => Promise.all([...transports.values()].map((transport) => transport.close())));
  return { url, http, seen };
}

async function connected(
  transports: Map<string, StreamableHTTPServerTransport>,
  listed: readonly object[],
): Promise<StreamableHTTPServerTransport> {
  const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  const server = makeServer({ listed });
  await server.connect(transport as Parameters<typeof server.connect>[0]);
  return transport;
}

async function listen(http: Server): Promise<{ readonly url: string; readonly http: Server }> {
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  closing.push(() => {
    http.closeAllConnections();
    http.close();
  });
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`, http };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

async function call(server: McpTools, name: string, args: object = {}): Promise<ToolContent> {
  const tool = server.tools.find(({ schema }) => schema.name === name);
  return (await tool?.execute(args, contextOf())) as ToolContent;
}

function contextOf(): ToolContext {
  const session = Session.fromUserMessage("hello");
  const { signal } = new AbortController();
  return {
    session,
    sandbox: null,
    requireSandbox: () => session.requireSandbox(),
    signal,
    callId: "1",
    runId: "r",
    leaseToken: null,
  };
}
