import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { removeAll } from "./remove-tree.ts";

/** A request that the server received. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** An answer that replaces the normal one. */
export interface Fault {
  readonly status: number;
  readonly body?: string;
}

interface RunningSandbox {
  readonly id: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly commands: Map<string, number>;
  state: string;
}

type Reply = { readonly status: number; readonly body?: unknown } | null;

/**
 * A mock server for tests that implements the HTTP API of the OpenSandbox client.
 *
 * Tests against it prove that the backend and the client agree on paths, bodies, events and errors.
 * Commands really run, each sandbox with a separate home and temporary directory. They prove nothing about what a
 * real server adds: images, containers and their isolation, networks, limits, and snapshots of whole file systems. All
 * sandboxes here share one file system, so that a snapshot holds the home of a sandbox and no more.
 */
export class OpenSandboxServer implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  readonly sandboxes: Map<string, RunningSandbox> = new Map();
  /** Decides which requests fail. */
  fault: (request: SeenRequest) => Fault | null = () => null;
  readonly #apiKey: string;
  readonly #shell: readonly [string, ...string[]];
  readonly #directory: string;
  readonly #snapshots = new Map<string, { readonly path: string; asked: number }>();
  readonly #http = createServer((request, response) => void this.#answer(request, response));

  private constructor(apiKey: string, shell: "bash" | "sh", directory: string) {
    this.#apiKey = apiKey;
    this.#shell = shell === "bash" ? ["bash", "--noprofile", "--norc"] : ["sh"];
    this.#directory = directory;
  }

  /** Like the real service, runs commands with bash if the image has it, else with the plain shell. */
  static async start(apiKey = "", shell: "bash" | "sh" = "bash"): Promise<OpenSandboxServer> {
    const server = new OpenSandboxServer(apiKey, shell, await mkdtemp(join(tmpdir(), "skein-opensandbox-")));
    server.#http.listen(0, "127.0.0.1");
    await once(server.#http, "listening");
    return server;
  }

  get domain(): string {
    return `127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.sandboxes.keys()].map((id) => this.#kill(id)));
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
    await removeAll(this.#directory);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray());
    const url = new URL(request.url ?? "", "http://server");
    const asked = { method: request.method ?? "", path: url.pathname, headers: request.headers, body };
    this.seen.push(asked);
    const fault = this.fault(asked);
    try {
      if (fault !== null) response.writeHead(fault.status).end(fault.body ?? "");
      else if (url.pathname.startsWith("/v1/")) send(response, await this.#manage(asked, url));
      else await this.#act(asked, url, response);
    } catch (error) {
      const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
      send(response, problem(missing ? 404 : 500, (error as Error).message));
    }
  }

  /** The part of the API that starts and ends sandboxes. */
  async #manage({ method, headers, body }: SeenRequest, url: URL): Promise<Reply> {
    if (this.#apiKey !== "" && headers["open-sandbox-api-key"] !== this.#apiKey) {
      return problem(401, `the key ${String(headers["open-sandbox-api-key"])} is not known`);
    }
    const [, , kind, id = "", part, port] = url.pathname.split("/").map(decodeURIComponent);
    const route = `${method} ${kind}${part === undefined ? "" : `/${part}`}`;
    if (route === "POST sandboxes" && id === "") return this.#create(JSON.parse(body.toString()));
    if (kind === "snapshots") return this.#snapshot(method, id);
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return problem(404, `no sandbox ${id}`);
    switch (route) {
      case "GET sandboxes":
        return { status: 200, body: described(sandbox) };
      case "DELETE sandboxes":
        await this.#kill(id);
        return { status: 204 };
      case "GET sandboxes/endpoints":
        return { status: 200, body: { endpoint: `${this.domain}/execd/${id}/${port}`, headers: { "x-route": id } } };
      case "POST sandboxes/renew-expiration":
        return { status: 200, body: JSON.parse(body.toString()) };
      case "POST sandboxes/resume":
        sandbox.state = "Running";
        return { status: 202 };
      case "POST sandboxes/snapshots": {
        const snapshotId = randomUUID();
        const path = join(this.#directory, snapshotId);
        await copyHome(sandbox.home, path);
        this.#snapshots.set(snapshotId, { path, asked: 0 });
        return { status: 202, body: snapshotBody(snapshotId, "Creating") };
      }
      default:
        return problem(404, `no route ${route}`);
    }
  }

  async #create(init: { env?: Record<string, string>; snapshotId?: string }): Promise<Reply> {
    const id = randomUUID();
    const home = join(this.#directory, id);
    await mkdir(join(home, "tmp"), { recursive: true });
    if (init.snapshotId !== undefined) {
      const snapshot = this.#snapshots.get(init.snapshotId);
      if (snapshot === undefined) return problem(404, `no snapshot ${init.snapshotId}`);
      await copyHome(snapshot.path, home);
    }
    const sandbox = { id, home, env: { ...init.env }, commands: new Map(), state: "Running" };
    this.sandboxes.set(id, sandbox);
    return { status: 202, body: described(sandbox) };
  }

  async #snapshot(method: string, id: string): Promise<Reply> {
    const snapshot = this.#snapshots.get(id);
    if (snapshot === undefined) return problem(404, `no snapshot ${id}`);
    if (method === "DELETE") {
      this.#snapshots.delete(id);
      await removeAll(snapshot.path);
      return { status: 204 };
    }
    snapshot.asked += 1;
    return { status: 200, body: snapshotBody(id, snapshot.asked > 1 ? "Ready" : "Creating") };
  }

  /** A container would end all of its processes; here they are found by their home. */
  async #kill(id: string): Promise<void> {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return;
    this.sandboxes.delete(id);
    for (const pid of processesOf(sandbox.home)) killQuietly(pid, "SIGKILL");
    await removeAll(sandbox.home);
  }

  /** The part of the API that acts in a sandbox. */
  async #act(asked: SeenRequest, url: URL, response: ServerResponse): Promise<void> {
    const [, id = ""] = /^\/execd\/([^/]+)\/\d+/.exec(url.pathname) ?? [];
    const route = `${asked.method} ${url.pathname.replace(/^\/execd\/[^/]+\/\d+/, "")}`;
    const sandbox = this.sandboxes.get(id);
    const path = url.searchParams.get("path") ?? "";
    if (sandbox === undefined || asked.headers["x-route"] !== id)
      return send(response, problem(404, "no such sandbox"));
    switch (route) {
      case "GET /ping":
        return send(response, { status: 200, body: "pong" });
      case "POST /command":
        return runCommand(this.#shell, sandbox, JSON.parse(asked.body.toString()), response);
      case "DELETE /command":
        return send(response, await interrupt(sandbox, url.searchParams.get("id") ?? ""));
      case "GET /files/download":
        return void response.writeHead(200).end(await readFile(path));
      case "POST /files/upload":
        await upload(asked);
        return send(response, { status: 200 });
      case "GET /directories/list":
        return send(response, { status: 200, body: await listed(path, Number(url.searchParams.get("depth") ?? 1)) });
      default:
        return send(response, problem(404, `no route ${route}`));
    }
  }
}

interface CommandRequest {
  readonly command: string;
  readonly cwd?: string;
  readonly timeout?: number;
  readonly envs?: Record<string, string>;
}

/** Sends output like the real service: lines without newlines, an empty line as a newline. */
async function runCommand(
  [shell, ...flags]: readonly [string, ...string[]],
  sandbox: RunningSandbox,
  request: CommandRequest,
  response: ServerResponse,
): Promise<void> {
  const id = randomUUID();
  const tell = (event: object): boolean => response.write(`${JSON.stringify({ timestamp: Date.now(), ...event })}\n\n`);
  const outputs = ["stdout", "stderr"].map((name) => join(sandbox.home, "tmp", `${id}.${name}`));
  const files = outputs.map((path) => openSync(path, "w"));
  const child = spawn(shell, [...flags, "-c", request.command], {
    cwd: request.cwd ?? sandbox.home,
    env: {
      PATH: process.env["PATH"],
      HOME: sandbox.home,
      TMPDIR: join(sandbox.home, "tmp"),
      ...sandbox.env,
      ...request.envs,
    },
    detached: true,
    stdio: ["ignore", ...files],
  });
  for (const file of files) closeSync(file);
  const pid = child.pid as number;
  const end = (): void => killQuietly(-pid, "SIGKILL");
  const timer = setTimeout(end, request.timeout ?? 2 ** 31 - 1);
  response.on("close", () => child.exitCode === null && child.signalCode === null && end());
  sandbox.commands.set(id, pid);
  response.writeHead(200, { "content-type": "text/event-stream" });
  tell({ type: "init", text: id });
  const [code] = (await once(child, "exit")) as [number | null];
  clearTimeout(timer);
  sandbox.commands.delete(id);
  for (const [index, type] of ["stdout", "stderr"].entries()) {
    const text = await readFile(outputs[index] as string, "utf8").catch(() => "");
    const lines = text.split(/\r\n|\n|\r/);
    if (lines.at(-1) === "") lines.pop();
    for (const line of lines) tell({ type, text: line === "" ? "\n" : line });
  }
  if (code === 0) tell({ type: "execution_complete", execution_time: 1 });
  else tell({ type: "error", error: { ename: "CommandExecError", evalue: String(code ?? -1), traceback: [] } });
  // The real service keeps the stream open for a while after the last event.
  await sleep(300);
  response.end();
}

async function interrupt(sandbox: RunningSandbox, id: string): Promise<Reply> {
  const pid = sandbox.commands.get(id);
  if (pid === undefined) return problem(500, `command ${id} is not running`);
  killQuietly(-pid, "SIGTERM");
  for (const deadline = Date.now() + 3000; sandbox.commands.has(id) && Date.now() < deadline; ) await sleep(10);
  killQuietly(-pid, "SIGKILL");
  return { status: 200 };
}

async function upload({ headers, body }: SeenRequest): Promise<void> {
  const type = headers["content-type"] ?? "";
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  const { path, mode = 644 } = JSON.parse(await (form.get("metadata") as File).text()) as {
    path: string;
    mode?: number;
  };
  await mkdir(dirname(path), { recursive: true });
  const data = new Uint8Array(await (form.get("file") as File).arrayBuffer());
  // The API writes modes as decimal numbers that look like octal ones.
  await writeFile(path, data, { mode: Number.parseInt(String(mode), 8) });
}

async function listed(directory: string, depth: number): Promise<object[]> {
  const items: object[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    const { size } = await lstat(path);
    const type = entry.isFile()
      ? "file"
      : entry.isDirectory()
        ? "directory"
        : entry.isSymbolicLink()
          ? "symlink"
          : "other";
    items.push({ path, type, size, mode: 644, owner: "root", group: "root", modified_at: new Date().toISOString() });
    if (entry.isDirectory() && depth > 1) items.push(...(await listed(path, depth - 1)));
  }
  return items;
}

async function copyHome(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  const copying = spawn("cp", ["-a", `${from}/.`, to]);
  await once(copying, "exit");
}

function described({ id, state }: RunningSandbox): object {
  const createdAt = new Date().toISOString();
  return { id, status: { state }, createdAt, expiresAt: null, entrypoint: ["tail"], metadata: {} };
}

function snapshotBody(id: string, state: string): object {
  return { id, sandboxId: "any", status: { state }, createdAt: new Date().toISOString() };
}

function problem(status: number, message: string): { readonly status: number; readonly body: object } {
  return { status, body: { code: `TEST::${status}`, message } };
}

function send(response: ServerResponse, reply: Reply): void {
  if (reply === null || response.headersSent) return void response.end();
  // The client parses a response without a length as JSON, even an empty one.
  if (reply.body === undefined) return void response.writeHead(reply.status, { "content-length": "0" }).end();
  response.writeHead(reply.status, { "content-type": "application/json" }).end(JSON.stringify(reply.body));
}

function processesOf(home: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOME=${home}\0`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

function killQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already ended.
  }
}
