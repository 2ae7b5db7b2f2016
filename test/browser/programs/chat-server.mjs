// Builds a page of ../use-chat or ../ag-ui and serves it, with an agent that counts ten words a second on request,
// calls a tool by its name, answers a picture with its hash, and otherwise answers how often it was asked.
// node chat-server.mjs <directory> <port> <page>
import { createHash } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { createAgent, defineTool } from "skein";
import { createServer } from "skein/http";
import { openSqliteStore } from "skein/sqlite";
import { build } from "vite";

const [directory = "", port = "0", page = "use-chat"] = process.argv.slice(2);
const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const studioDirectory = join(directory, "page");

await build({
  root: here(`../${page}`),
  configFile: false,
  logLevel: "error",
  plugins: [react()],
  resolve: { alias: { "skein/ui": here("../../../dist/http/ui/index.js") } },
  build: { outDir: studioDirectory, target: "es2022", minify: false },
});

let asked = 0;
/** @type {import("skein").Model} */
const model = {
  provider: "test",
  id: "test",
  complete: () => Promise.reject(new Error("This model streams.")),
  async *stream({ messages }, { signal } = {}) {
    const last = messages.at(-1);
    const said = last?.role === "user" ? last.content : "";
    const picture = typeof said === "string" ? undefined : said.find(({ type }) => type === "image");
    if (picture !== undefined && "data" in picture) {
      const hash = createHash("sha256").update(Buffer.from(picture.data, "base64")).digest("hex");
      yield { type: "text-delta", text: `I see ${hash}.` };
      yield { type: "finish", stopReason: "stop" };
      return;
    }
    const text = String(said);
    const count = Number(/^count (\d+)$/.exec(text)?.[1] ?? 0);
    if (text === "look" || text === "pay") {
      yield { type: "thinking-delta", text: `I should ${text}.` };
      yield { type: "tool-call-delta", index: 0, id: `call-${++asked}`, name: text, arguments: '{"euros":5}' };
      yield { type: "finish", stopReason: "tool_calls" };
      return;
    }
    for (let word = 1; word <= count; word++) {
      await wait(100, undefined, signal === undefined ? {} : { signal });
      yield { type: "text-delta", text: `word-${word} ` };
    }
    if (count === 0) yield { type: "text-delta", text: last?.role === "tool" ? "It is done." : `Answer ${++asked}.` };
    yield { type: "finish", stopReason: "stop" };
  },
};

/** @type {(name: string, needsApproval: boolean, answer: string) => import("skein").Tool} */
const toolOf = (name, needsApproval, answer) =>
  defineTool({ name, description: name, parameters: { type: "object" }, needsApproval, execute: () => answer });

const agent = createAgent({
  name: "talker",
  prompt: "Talk.",
  model,
  tools: [toolOf("look", false, "a garden"), toolOf("pay", true, "paid")],
  builtInTools: false,
});
const store = await openSqliteStore({ path: join(directory, "skein.db") });
const server = await createServer({ store, agents: [agent], port: Number(port), studioDirectory });
process.stdout.write(`${JSON.stringify({ url: await server.listen() })}\n`);
