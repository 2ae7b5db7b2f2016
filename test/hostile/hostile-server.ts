import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { hashToken } from "../../src/http/api-token.ts";
import type { ServerLimits, ServerLogLine } from "../../src/http/index.ts";
import { type Answer, sendRequest, tokenOf } from "../http/server-support.ts";
import { type Attacker, type Canary, must, type Who } from "./attack.ts";
import { createAttacker, marksIn, until } from "./attackers.ts";
import { HealthProber } from "./health-prober.ts";

const PROGRAM = fileURLToPath(new URL("programs/serve-hostile.mjs", import.meta.url));
const HEAP_MEGABYTES = 512;
const HEALTH_MS_MAX = 1000;
const LONG_AGO = "2020-01-01T00:00:00.000Z";

/** How long a request may take to come in. */
export type TimeLimits = Pick<ServerLimits, "headersTimeoutMs" | "requestTimeoutMs">;

/** A server process with a small heap, someone's sessions in it, and a prober that asks for its health all the while. */
export class HostileServer {
  readonly url: string;
  readonly directory: string;
  readonly #child: ChildProcess;
  readonly #log: ServerLogLine[];
  readonly #prober: HealthProber;
  #canary: Canary | null = null;
  #digest = "";

  private constructor(url: string, directory: string, child: ChildProcess, log: ServerLogLine[]) {
    this.url = url;
    this.directory = directory;
    this.#child = child;
    this.#log = log;
    this.#prober = new HealthProber(url, child.pid as number);
  }

  /** Starts one with as many attackers as are needed, and the usual limits of time unless others are given. */
  static async start(attackers: number, timeLimits: TimeLimits = {}): Promise<HostileServer> {
    const directory = await mkdtemp(join(tmpdir(), "hostile-"));
    await writeFile(join(directory, "tokens"), tokenLines(attackers).join("\n"), { mode: 0o600 });
    const args = [
      `--max-old-space-size=${HEAP_MEGABYTES}`,
      "--no-warnings",
      PROGRAM,
      directory,
      JSON.stringify(timeLimits),
    ];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const log: ServerLogLine[] = [];
    const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> });
    const listening = once(lines, "line").then(([line]) => (JSON.parse(line as string) as { url: string }).url);
    const ended = once(child, "exit").then(() => Promise.reject(new Error("The server ended as it began.")));
    const url = await Promise.race([listening, ended]);
    ended.catch(() => {});
    lines.on("line", (line) => log.push(JSON.parse(line) as ServerLogLine));
    const server = new HostileServer(url, directory, child, log);
    server.#canary = await makeCanary(url);
    server.#digest = await server.#digestOfCanary();
    return server;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  attacker(who: Who, index: number): Attacker {
    const userId = who === "administrator" ? "root" : who === "user without the right" ? "limited" : `m${index}`;
    const token = who === "no token" ? null : tokenOf(userId);
    const { url, directory } = this;
    return createAttacker({ url, userId, token, canary: this.#canary as Canary, directory, mark: `pwned-${index}` });
  }

  /** Starts a new observation: earlier results do not belong to this attack. */
  async calm(): Promise<void> {
    this.#log.length = 0;
    await this.#prober.take();
  }

  /** Throws unless the server is unharmed: alive, in time, without an internal error, and with the canary unchanged. */
  async checkUnharmed(): Promise<void> {
    const digest = await this.#digestOfCanary();
    must(digest === this.#digest, "What belongs to someone else has changed.");
    const errors = this.#log.filter(({ level, status }) => level === "error" || (status ?? 0) >= 500);
    must(errors.length === 0, `The server's log has a failure: ${JSON.stringify(errors[0])}`);
    const marks = marksIn(this.directory);
    must(!marks.includes("pwned-canary"), "A command ran that waits for someone else's word.");
    const { longestMs, failures } = await this.#prober.take();
    must(failures.length === 0, `The health route failed: ${failures[0]}`);
    must(longestMs < HEALTH_MS_MAX, `The health route took ${Math.round(longestMs)} ms.`);
    must(this.isAlive, `The server ended with ${this.#child.signalCode ?? this.#child.exitCode}.`);
  }

  async close(): Promise<void> {
    this.#prober.stop();
    const ended = this.isAlive ? once(this.#child, "exit") : null;
    this.#child.kill("SIGKILL");
    await ended;
    await rm(this.directory, { recursive: true, force: true });
  }

  /**
   * The contents of the canary's sessions, and the state of its run; waits until the log contains every request so far.
   */
  async #digestOfCanary(): Promise<string> {
    const { sessionId, busyId, runId, forkId } = this.#canary as Canary;
    const hash = createHash("sha256");
    const paths = [sessionId, busyId, forkId].map((id) => `/api/sessions/${id}/export`);
    let last: Answer | null = null;
    for (const path of [...paths, `/api/sessions/${busyId}/runs/${runId}`, `/api/sessions/${sessionId}/checkpoints`]) {
      last = await asCanary(this.url, "GET", path);
      must(last.status === 200, `${path} does not answer its owner`, last);
      hash.update(last.text);
    }
    const requestId = last?.headers.get("x-request-id");
    await until(async () => this.#log.some((line) => line.requestId === requestId));
    return hash.digest("hex");
  }
}

function tokenLines(attackers: number): string[] {
  const none = { approve: false, run: false, files: false };
  const users: readonly { readonly userId: string; readonly [key: string]: unknown }[] = [
    { userId: "canary" },
    { userId: "root", admin: true },
    { userId: "limited", may: none },
    { userId: "expired", expiresAt: LONG_AGO },
    ...Array.from({ length: attackers }, (_, index) => ({ userId: `m${index}` })),
  ];
  return users.map((user) => JSON.stringify({ ...user, hash: hashToken(tokenOf(user.userId)) }));
}

function asCanary(url: string, method: string, path: string, body?: unknown): Promise<Answer> {
  return sendRequest(`${url}${path}`, method, body, { token: tokenOf("canary") });
}

async function makeCanary(url: string): Promise<Canary> {
  const ask = async (path: string, body: unknown) => {
    const answer = await asCanary(url, "POST", path, body);
    must(answer.status < 300, `The canary could not be made with ${path}`, answer);
    return answer.body;
  };
  const make = async (name: string): Promise<string> => (await ask("/api/sessions", { name })).header.id;
  const sessionId = await make("canary");
  await ask(`/api/sessions/${sessionId}/turns`, { turnId: "secret", role: "user", content: "The canary sings." });
  const { id: checkpointId } = await ask(`/api/sessions/${sessionId}/checkpoints`, {});
  const { header: fork } = await ask(`/api/sessions/${sessionId}/forks`, { branchName: "aside" });
  const busyId = await make("canary at work");
  const input = 'call run_shell_command {"command":"touch pwned-canary"}';
  const { runId } = await ask(`/api/sessions/${busyId}/runs`, { input });
  let question = "";
  await until(async () => {
    const run = await asCanary(url, "GET", `/api/sessions/${busyId}/runs/${runId}`);
    question = run.body.questions[0]?.question ?? "";
    return question !== "";
  });
  return { userId: "canary", sessionId, entryId: "secret", checkpointId, forkId: fork.id, busyId, runId, question };
}
