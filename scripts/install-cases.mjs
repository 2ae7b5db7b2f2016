import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

/**
 * A folder that the packed package is installed into, alone or with other packages, and the commands that must work
 * there. `node` is the version of Node to use (default: that of this process); `removed` are packages that npm installs
 * and that are deleted again; a command is a program of an installed package, or `node`, with its arguments. A command
 * must end with exit code 0, and its output must match `prints`.
 * @typedef {{ run: readonly string[], prints?: RegExp, input?: string }} Command
 * @typedef {{ name: string, node?: string, packages?: readonly string[], removed?: readonly string[], files?: Record<string, string>,
 *   commands: readonly Command[] }} InstallCase
 */

/** The first program of the README. */
const firstProgram = /```ts\n(?<code>[\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.groups?.[
  "code"
];

/** @type {Record<string, unknown>} */
const doors = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).exports;
const subpaths = Object.keys(doors).map((subpath) => subpath.replace(/^\./, "skein"));

/** Starts the server as a user does, requests its page, and stops it. */
const serveProgram = `
import { spawn } from "node:child_process";
const server = spawn(process.execPath, ["node_modules/skein/dist/cli/skein.js", "serve", "--port", "0"]);
server.stderr.pipe(process.stderr);
let said = "";
for await (const text of server.stdout) {
  said += text;
  const url = /http:[^ #]+/.exec(said);
  if (url === null) continue;
  console.log((await (await fetch(url[0])).text()).includes("<title>") ? "studio served" : "no studio");
  server.kill();
}`;

/** Requests a completion from a fake server over both APIs of the package openai. */
const openaiProgram = `
import { createServer } from "node:http";
import { openai } from "skein/openai";
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, input_tokens: 1, output_tokens: 1 };
const message = { role: "assistant", content: "hello" };
const chat = { id: "c", object: "chat.completion", choices: [{ index: 0, finish_reason: "stop", message }], usage };
const output = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "hello", annotations: [] }] }];
const response = { id: "r", object: "response", status: "completed", output, usage };
const server = createServer((request, answer) => {
  request.resume().on("end", () => {
    answer.setHeader("content-type", "application/json");
    answer.end(JSON.stringify(request.url.endsWith("/responses") ? response : chat));
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const baseURL = "http://127.0.0.1:" + server.address().port + "/v1";
for (const api of ["chat", "responses"]) {
  const model = openai("gpt-4o", { apiKey: "none", baseURL, api });
  const { content } = await model.complete({ messages: [{ role: "user", content: "hi" }] });
  console.log(api, content);
}
server.closeAllConnections();
server.close();`;

const toolProgram = `
import { defineTool } from "skein";
import { z } from "zod";
try {
  const parameters = z.object({ city: z.string() });
  const tool = defineTool({ name: "weather", description: "Says how the weather is.", parameters, execute: () => "" });
  console.log("tool with", Object.keys(tool.schema.parameters.properties).join());
} catch ({ code, message }) {
  console.log(code, message);
}
console.log(typeof (await import("skein/http")).createServer);`;

/** No server listens at this port: a supported driver reports that, an unsupported one the version to install. */
const redisProgram = `
import { openStore } from "skein";
await openStore("redis://127.0.0.1:1").catch(({ code, message }) => console.log(code, message));`;

const nestProgram = `
import "reflect-metadata";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { SessionManager } from "skein";
import { SessionModule } from "skein/nest";
class Application {}
Module({ imports: [SessionModule.stub()] })(Application);
const context = await NestFactory.createApplicationContext(Application, { logger: ["error"] });
const { userId } = await context.get(SessionManager).create({ userId: "user-1" });
console.log("session", userId);
await context.close();`;

const serverProgram = `
import { openStore } from "skein";
import { createServer } from "skein/http";
import "@hono/node-server";
const store = await openStore("memory:");
const server = await createServer({ store });
const url = await server.listen();
console.log("status", (await fetch(url + "/openapi.json")).status);
await server.close();
await store.close();`;

const tokensProgram = `
import { countTokens } from "gpt-tokenizer";
import { createTree, openStore } from "skein";
import { compact } from "skein/context";
import { scripted } from "skein/offline";
const content = "Exact, and not by the rule of thumb: internationalization.";
const store = await openStore("memory:");
const tree = await createTree(store);
for (let turn = 0; turn < 4; turn++) await tree.appendMessage({ role: "user", content });
const { tokensBefore } = await compact(tree, { model: scripted(["A summary."]), settings: { keepRecentTokens: 20 } });
console.log(tokensBefore === 4 * countTokens(content) ? "exact" : "estimated");`;

const bundledProgram = `
${subpaths
  .filter((subpath) => subpath !== "skein/nest" && subpath !== "skein/langgraph")
  .map((subpath, index) => `import * as part${index} from "${subpath}";\nglobalThis.part${index} = part${index};`)
  .join("\n")}
import { createTree, openStore } from "skein";
const store = await openStore("memory:");
const tree = await createTree(store, { userId: "user-1" });
await tree.appendMessage({ role: "user", content: "hi" });
console.log("bundled", (await tree.buildContext()).messages.length);
await openStore("redis://127.0.0.1:1").catch(({ code }) => console.log(code));`;

const clientProgram = `
import { readFileSync } from "node:fs";
const bytes = readFileSync("client.js").length;
console.log(bytes < 15_000 ? "small enough: " : "too large: ", bytes);`;

const page = `import { createTree, openStore } from "skein";
export const dynamic = "force-dynamic";
export default async function Page() {
  const store = await openStore("memory:");
  const tree = await createTree(store, { userId: "user-1" });
  return <p>{(await tree.buildContext()).messages.length}</p>;
}`;

const browserTypes = {
  lib: ["es2020", "dom"],
  target: "es2020",
  module: "esnext",
  moduleResolution: "bundler",
  types: [],
};
const nodeTypes = { lib: ["es2023", "esnext.disposable"], target: "es2022", module: "nodenext", types: ["node"] };
/** @type {(options: object, file: string) => string} */
const tsconfig = (options, file) =>
  JSON.stringify({ compilerOptions: { ...options, strict: true, noEmit: true, skipLibCheck: false }, files: [file] });

/** @type {(version: string) => InstallCase} */
const typesWith = (version) => ({
  name: `tsc ${version}`,
  packages: [`typescript@${version}`, "@types/node@20", "@nestjs/common", "reflect-metadata", "rxjs"],
  files: {
    "client.ts":
      'import { createClient } from "skein/client";\nexport const client = createClient({ url: "http://127.0.0.1:1" });\n',
    "all.ts": subpaths.map((subpath, index) => `export * as part${index} from "${subpath}";`).join("\n"),
    "tsconfig.client.json": tsconfig(browserTypes, "client.ts"),
    // The declarations of Nest are not checked.
    "tsconfig.all.json": tsconfig({ ...nodeTypes, exactOptionalPropertyTypes: true }, "all.ts").replace(
      '"skipLibCheck":false',
      '"skipLibCheck":true',
    ),
  },
  commands: [{ run: ["tsc", "-p", "tsconfig.client.json"] }, { run: ["tsc", "-p", "tsconfig.all.json"] }],
});

/** @type {(name: string, program: string, prints: RegExp, more?: readonly string[]) => InstallCase} */
const beside = (name, program, prints, more = []) => ({
  name: `beside ${name}`,
  packages: [name, ...more],
  files: { "program.mjs": program },
  commands: [{ run: ["node", "program.mjs"], prints }],
});

/** @type {(version: number) => InstallCase} */
const besideNest = (version) =>
  beside(`@nestjs/common@${version}`, nestProgram, /session user-1/, [
    `@nestjs/core@${version}`,
    "reflect-metadata",
    "rxjs",
  ]);

/** @type {(node: string) => InstallCase} */
const aloneOn = (node) => ({
  name: `alone on Node ${node}`,
  node,
  files: { "first.mjs": firstProgram ?? "", "serve.mjs": serveProgram },
  commands: [
    { run: ["node", "--version"], prints: new RegExp(`^v${node}\\.`) },
    { run: ["node", "first.mjs"], prints: /a\.txt says: hello/ },
    { run: ["npx", "skein"], prints: /Usage: skein <command>/ },
    { run: ["npx", "skein", "chat"], input: "list the files\n", prints: /offline/ },
    { run: ["node", "serve.mjs"], prints: /studio served/ },
  ],
});

/** Every promise about installation, each in a separate folder. @type {readonly InstallCase[]} */
export const installCases = [
  ...["20.19", "22", "24"].map(aloneOn),
  ...[5, 6, 7].map((version) => beside(`openai@${version}`, openaiProgram, /chat hello\nresponses hello/)),
  beside("zod@3", toolProgram, /INVALID_TOOL .*make it with zod 4\.2 or later.*\nfunction/),
  beside("zod@3.23", toolProgram, /INVALID_TOOL .*make it with zod 4\.2 or later.*\nfunction/),
  beside("zod@4", toolProgram, /tool with city\nfunction/),
  beside("redis@4", redisProgram, /DRIVER_VERSION .*install version 5 or later/),
  ...[5, 6].map((version) => beside(`redis@${version}`, redisProgram, /STORE_FAILED/)),
  ...[1, 2].map((version) => beside(`@hono/node-server@${version}`, serverProgram, /status 200/, ["hono@4"])),
  ...[10, 11, 12].map(besideNest),
  ...[3, 4].map((version) => beside(`gpt-tokenizer@${version}`, tokensProgram, /exact/)),
  beside("@openai/agents", toolProgram, /tool with city\nfunction/, ["zod@4"]),
  {
    name: "esbuild",
    packages: ["esbuild"],
    removed: ["libsql"],
    files: { "program.mjs": bundledProgram, "client.mjs": 'export * from "skein/client";', "size.mjs": clientProgram },
    commands: [
      { run: ["esbuild", "program.mjs", "--bundle", "--platform=node", "--format=esm", "--outfile=bundle.mjs"] },
      { run: ["node", "bundle.mjs"], prints: /bundled 1\nDRIVER_MISSING/ },
      { run: ["esbuild", "client.mjs", "--bundle", "--format=esm", "--minify", "--outfile=client.js"] },
      { run: ["node", "size.mjs"], prints: /small enough/ },
    ],
  },
  {
    name: "Vite SSR",
    packages: ["vite@8.3.4"],
    removed: ["libsql"],
    files: {
      "program.mjs": bundledProgram,
      "vite.config.mjs": 'export default { ssr: { noExternal: true }, build: { ssr: "program.mjs", outDir: "out" } };',
    },
    commands: [{ run: ["vite", "build"] }, { run: ["node", "out/program.js"], prints: /bundled 1\nDRIVER_MISSING/ }],
  },
  {
    name: "Next 16, Turbopack",
    packages: ["next@16", "react@19", "react-dom@19"],
    removed: ["libsql"],
    files: {
      "app/page.jsx": page,
      "app/layout.jsx": "export default ({ children }) => <html><body>{children}</body></html>;",
    },
    commands: [{ run: ["next", "build"], prints: /Turbopack[\s\S]*Compiled successfully/ }],
  },
  typesWith("5.9"),
  typesWith("7"),
];
