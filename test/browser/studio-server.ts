import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { hashToken } from "../../src/http/api-token.ts";
import { type Client, createClient } from "../../src/http/client/index.ts";

const BUILT = fileURLToPath(new URL("../../dist/cli/skein.js", import.meta.url));

/** Longer than a lease outlives its process. */
const LATER_SECONDS = 60;

/** The API tokens of the server of that kind, by whom they let in. */
export const TOKENS = {
  ann: "a-token-that-lets-ann-in",
  ben: "a-token-that-lets-ben-in",
  /** May read and write their sessions only. */
  guest: "a-token-that-lets-a-guest-in",
} as const;

/**
 * Which program serves: the command line's for everyone on this machine, with sample sessions and a workspace, the same with
 * a token of its own, the same for users with a token, the same with runs that park as soon as they ask, one whose model
 * takes its time, one whose model calls what it is told to, or one with a page of the AI SDK or of AG-UI in place of the studio.
 */
export type ServerKind = "serve" | "own" | "tokens" | "parking" | "slow" | "asking" | "chat" | "ag-ui";

const PROGRAMS: Readonly<
  Record<ServerKind, (directory: string, port: number, aheadSeconds: number) => readonly string[]>
> = {
  serve: (directory, port) => [
    ...[BUILT, "serve", "--json", "--samples", "--open-to-this-machine", "--port", String(port)],
    ...["--store", `sqlite:${join(directory, "skein.db")}`, "--workspace", join(directory, "workspace")],
  ],
  own: (directory, port) => [
    ...[BUILT, "serve", "--json", "--samples", "--port", String(port)],
    ...["--store", `sqlite:${join(directory, "skein.db")}`],
  ],
  tokens: (directory, port) => [
    ...[BUILT, "serve", "--json", "--port", String(port), "--token-file", join(directory, "tokens")],
    ...["--store", `sqlite:${join(directory, "skein.db")}`],
  ],
  parking: (directory, port) => [
    ...[BUILT, "serve", "--json", "--open-to-this-machine", "--park-after", "0", "--port", String(port)],
    ...["--store", `sqlite:${join(directory, "skein.db")}`, "--workspace", join(directory, "workspace")],
  ],
  asking: (directory, port) => [
    fileURLToPath(new URL("programs/asking-server.mjs", import.meta.url)),
    ...[join(directory, "skein.db"), String(port)],
  ],
  chat: (directory, port) => [
    ...[fileURLToPath(new URL("programs/chat-server.mjs", import.meta.url)), directory, String(port), "use-chat"],
  ],
  "ag-ui": (directory, port) => [
    ...[fileURLToPath(new URL("programs/chat-server.mjs", import.meta.url)), directory, String(port), "ag-ui"],
  ],
  slow: (directory, port, aheadSeconds) => [
    fileURLToPath(new URL("programs/slow-server.mjs", import.meta.url)),
    ...[join(directory, "skein.db"), String(port), String(aheadSeconds)],
  ],
};

/** A server in a process of its own, with a store and a workspace of its own, that can be killed and started again. */
export class StudioServer implements AsyncDisposable {
  readonly url: string;
  /** What it made for whoever started it. */
  readonly token: string | null;
  readonly client: Client;
  readonly workspace: string;
  readonly #directory: string;
  readonly #kind: ServerKind;
  #child: ChildProcess;

  private constructor(kind: ServerKind, directory: string, { child, url, token }: Launched) {
    this.#kind = kind;
    this.#directory = directory;
    this.#child = child;
    this.url = url;
    this.token = token ?? null;
    this.client = createClient(token === undefined ? { url } : { url, token });
    this.workspace = join(directory, "workspace");
  }

  static async start(kind: ServerKind = "serve"): Promise<StudioServer> {
    const directory = await mkdtemp(join(tmpdir(), "skein-studio-"));
    await mkdir(join(directory, "workspace"));
    const may = { approve: false, run: false, files: false };
    const lines = Object.entries(TOKENS).map(([userId, token]) =>
      JSON.stringify({ hash: hashToken(token), userId, ...(userId === "guest" && { may }) }),
    );
    await writeFile(join(directory, "tokens"), lines.join("\n"));
    return new StudioServer(kind, directory, await launch(directory, PROGRAMS[kind](directory, 0, 0)));
  }

  /** Ends it as a power cut does. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }

  /** Starts it again, at the same address and later than the run of a killed process keeps its session. */
  async restart(): Promise<void> {
    const port = Number(new URL(this.url).port);
    const { child } = await launch(this.#directory, PROGRAMS[this.#kind](this.#directory, port, LATER_SECONDS));
    this.#child = child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

interface Launched {
  readonly child: ChildProcess;
  readonly url: string;
  readonly token?: string;
}

async function launch(directory: string, args: readonly string[]): Promise<Launched> {
  // Keys of whoever runs the tests would offer models that cost money.
  const env = { ...process.env, SKEIN_HOME: join(directory, "home"), OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "" };
  const child = spawn(process.execPath, ["--no-warnings", ...args], { env });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  for await (const line of createInterface(child.stdout))
    return { child, ...(JSON.parse(line) as { url: string; token?: string }) };
  throw new Error(`The server ended before it listened: ${stderr}`);
}
