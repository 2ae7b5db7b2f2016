import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const blocks = [...read("docs/guides/web.md").matchAll(/```ts\n(?<code>[\s\S]*?)```/g)].map(
  ({ groups }) => groups?.["code"] ?? "",
);
let folder: string;

beforeAll(() => {
  mkdirSync(join(root, ".cache"), { recursive: true });
  folder = mkdtempSync(join(root, ".cache/guide-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface FastifyApp {
  listen(options: { port: number; host: string }): Promise<string>;
  close(): Promise<void>;
}

const servers: Readonly<Record<string, (app: never) => Promise<{ url: string; close(): Promise<unknown> }>>> = {
  "skein/express": async (app: { listen(port: number, host: string): Server }) => {
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    const close = async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    };
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
  },
  "skein/fastify": async (app: FastifyApp) => {
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    return { url, close: () => app.close() };
  },
};

test.for(["skein/http", "skein/hono", "skein/express", "skein/fastify"])(
  "the guide's program for %s fits on a page and runs unchanged, except for its port",
  async (subpath) => {
    const code = blocks.find((block) => block.includes(`from "${subpath}"`)) ?? "";
    const lines = code.trimEnd().split("\n");
    expect(lines.filter((line) => line !== "").length).toBeLessThanOrEqual(16);
    const { app, handler, manager } = await load(subpath, lines.slice(0, -1).join("\n"));
    const fetching = app?.fetch ?? handler;
    const running = servers[subpath] === undefined ? null : await servers[subpath](app as never);
    const send = (headers: Record<string, string> = {}): Promise<Response> => {
      const init = { method: "POST", body: "hello", headers: { "content-type": "text/plain", ...headers } };
      if (running !== null) return fetch(`${running.url}/say`, init);
      return Promise.resolve(fetching?.(new Request("http://127.0.0.1/say", init)) as Promise<Response>);
    };
    const first = await send();
    const { id, turns } = (await first.json()) as { id: string; turns: number };
    expect(turns).toBe(1);
    const cookie = first.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    expect(cookie).toBe(`skein_session=${id}`);
    expect(await (await send({ cookie })).json()).toEqual({ id, turns: 2 });
    await running?.close();
    await manager.store.close();
  },
);

interface Loaded {
  readonly app?: { fetch?(request: Request): unknown };
  readonly handler?: (request: Request) => Promise<Response>;
  readonly manager: { readonly store: { close(): Promise<void> } };
}

/** The program without its last line, which listens; with the sources and a store in memory. */
async function load(subpath: string, code: string): Promise<Loaded> {
  const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, { default: string }> };
  const onSources = code
    .replace(/from "skein(?<door>[^"]*)"/g, (_match, door: string) => {
      const built = exports[`.${door}`]?.default ?? "";
      return `from "${join(root, built.replace("./dist/", "src/").replace(/\.js$/, ".ts"))}"`;
    })
    .replace("sqlite:./skein.db", "memory:");
  const file = join(folder, `${subpath.replace("/", "-")}.ts`);
  const subject = code.includes("const handler") ? "handler" : "app";
  writeFileSync(file, `${onSources}\nexport { ${subject}, manager };\n`);
  return (await import(file)) as Loaded;
}
