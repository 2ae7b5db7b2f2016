// An MCP server for tests. As a program, it communicates over its standard input and output.
import { appendFileSync } from "node:fs";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const anything = { type: "object", additionalProperties: true };
const pixel = "iVBORw0KGgo=";

/** @type {Record<string, (args: Record<string, unknown>) => object>} */
const answers = {
  echo: ({ text }) => ({ content: [{ type: "text", text: String(text) }] }),
  picture: () => ({
    content: [
      { type: "text", text: "a picture" },
      { type: "image", data: pixel, mimeType: "image/png" },
      { type: "audio", data: pixel, mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "file:///notes.txt", mimeType: "text/plain", text: "the notes" } },
      { type: "resource", resource: { uri: "file:///all.zip", mimeType: "application/zip", blob: pixel } },
      { type: "resource_link", uri: "https://example.com/more", name: "more" },
    ],
  }),
  structured: () => ({ content: [], structuredContent: { degrees: 21 } }),
  twice: () => ({ content: [{ type: "text", text: '{ "degrees": 21 }' }], structuredContent: { degrees: 21 } }),
  silent: () => ({ content: [] }),
  fail: () => ({ content: [{ type: "text", text: "no such order" }], isError: true }),
  large: () => ({ content: [{ type: "text", text: `${"x".repeat(12_000_000)}end` }] }),
  wide: () => ({
    content: [
      { type: "text", text: "kept" },
      { type: "image", data: "A".repeat(9_000_000), mimeType: "image/png" },
    ],
  }),
};

/** @type {Record<string, object>} */
const annotated = {
  echo: { readOnlyHint: true },
  silent: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
};

/**
 * A server whose tool `wait` never answers; what becomes of it is written to the file that `MCP_TEST_NOTES` names.
 *
 * @param {{ notes?: string, listed?: readonly object[], perPage?: number }} options
 */
export function makeServer({ notes = process.env["MCP_TEST_NOTES"], listed = [], perPage = 3 } = {}) {
  /** @type {string[]} */
  const grown = [];
  const server = new Server({ name: "test", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  /** @param {string} line */
  const note = (line) => notes !== undefined && appendFileSync(notes, `${line}\n`);
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const names = [...Object.keys(answers), "wait", "grow", "pid", "crash", ...grown];
    const own = names.map((name) => ({
      name,
      description: `Does ${name}.`,
      inputSchema: anything,
      ...(annotated[name] === undefined ? {} : { annotations: annotated[name] }),
    }));
    const all = [...own, ...listed];
    const start = Number(params?.cursor ?? 0);
    const end = start + perPage;
    return { tools: all.slice(start, end), ...(end < all.length ? { nextCursor: String(end) } : {}) };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    if (params.name === "wait") {
      note("waiting");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      note("cancelled");
      return { content: [] };
    }
    if (params.name === "grow") {
      grown.push(`grown-${grown.length + 1}`);
      await server.sendToolListChanged();
      return { content: [] };
    }
    if (params.name === "pid") return { content: [{ type: "text", text: String(process.pid) }] };
    if (params.name === "crash") throw new Error("out of order");
    const answer = Object.hasOwn(answers, params.name) ? answers[params.name] : undefined;
    return answer?.(params.arguments ?? {}) ?? { content: [{ type: "text", text: `called ${params.name}` }] };
  });
  return server;
}

if (process.argv[1] === import.meta.filename) {
  if (process.argv[2] === "--broken") {
    process.stderr.write("no configuration found\n");
    process.exit(3);
  }
  await makeServer().connect(new StdioServerTransport());
}
