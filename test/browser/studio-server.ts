import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { hashToken } from "../../src/http/api-token.ts";
import { type Client, createClient } from "../../src/http/client/index.ts";
import { foreignEnvironment, writeForeignSessions } from "../cli/foreign-home.ts";

const BUILT = fileURLToPath(new URL("../../dist/cli/skein.js", import.meta.url));

/** The budgets of the server with budgets: one that few answers of the offline model use up, and one that they do not. */
const BUDGETS = [
  { per: "user", window: "1d", totalTokens: 60, warnAt: 0.2 },
  { per: "user", window: "30d", totalTokens: 1_000_000 },
];

/** Longer than the lease of a killed process. */
const LATER_SECONDS = 60;

/** The API tokens of the server with tokens, by user. */
export const TOKENS = {
  ann: "a-token-that-lets-ann-in",
  ben: "a-token-that-lets-ben-in",
  /** May only read and write their sessions. */
  guest: "a-token-that-lets-a-guest-in",
} as const;

/**
 * The program of a server: the command line's server for everyone on this machine, with sample sessions and a
 * workspace; the same with a token; the same on a machine with sessions of other programs; the same for users with tokens; the same with runs that park immediately; one with
 * budgets of its users; one with a slow model; one whose model calls tools on request; or one with a page of the AI SDK or of AG-UI instead of the
 * studio.
 */
export type ServerKind =
  | "serve"
  | "own"
  | "programs"
  | "tokens"
  | "parking"
  | "budgets"
  | "slow"
  | "asking"
  | "chat"
  | "ag-ui";

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
  programs: (directory, port) => [
    ...[BUILT, "serve", "--json", "--port", String(port)],
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
  budgets: (directory, port) => [
    ...[BUILT, "serve", "--json", "--open-to-this-machine", "--port", String(port)],
    ...["--store", `sqlite:${join(directory, "skein.db")}`],
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

/** A server in a separate process, with a separate store and workspace, that can be killed and restarted. */
export class StudioServer implements AsyncDisposable {
  readonly url: string;
  /** The token that it made for its user. */
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
    if (kind === "programs") await writeForeignSessions(homeOf(directory));
    return new StudioServer(kind, directory, await launch(directory, PROGRAMS[kind](directory, 0, 0), kind));
  }

  /** The database of its sessions. */
  get databasePath(): string {
    return join(this.#directory, "skein.db");
  }

  /** Kills it, as a power cut does. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }

  /** Restarts it at the same URL, with a clock after the end of a killed process's lease. */
  async restart(): Promise<void> {
    const port = Number(new URL(this.url).port);
    const { child } = await launch(
      this.#directory,
      PROGRAMS[this.#kind](this.#directory, port, LATER_SECONDS),
      this.#kind,
    );
    this.#child = child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

function homeOf(directory: string): string {
  return join(directory, "foreign");
}

interface Launched {
  readonly child: ChildProcess;
  readonly url: string;
  readonly token?: string;
}

async function launch(directory: string, args: readonly string[], kind: ServerKind): Promise<Launched> {
  // Keys of the developer would offer models that cost money.
  const keys = { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "" };
  // Sessions of the developer's own programs must not be shown.
  const env = {
    ...process.env,
    ...foreignEnvironment(homeOf(directory)),
    SKEIN_HOME: join(directory, "home"),
    ...(kind === "budgets" && { SKEIN_BUDGETS: JSON.stringify(BUDGETS) }),
    ...keys,
  };
  const child = spawn(process.execPath, ["--no-warnings", ...args], { env });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  for await (const line of createInterface(child.stdout))
    return { child, ...(JSON.parse(line) as { url: string; token?: string }) };
  throw new Error(`The server ended before it listened: ${stderr}`);
}
