import type { JsonObject } from "../../internal/json.ts";
import { show } from "../../session/errors.ts";
import {
  type ExecOptions,
  type ExecResult,
  type Sandbox,
  type SandboxCapabilities,
  SandboxError,
  type SandboxFile,
  type SandboxSpec,
} from "../../session/sandbox/sandbox.ts";
import { commandTimeoutMs } from "../command-limits.ts";
import type { Bubblewrap } from "./bubblewrap.ts";
import { checkCommand, checkExecOptions } from "./check-spec.ts";
import { ConfinedFiles } from "./confined-files.ts";
import type { Confinement } from "./confinement.ts";
import { containCommand } from "./contain-command.ts";
import { scratchName } from "./file-tree.ts";
import type { FileOwner } from "./pinned-directory.ts";
import { type CommandPlan, RunningCommand } from "./running-command.ts";
import { restoreSnapshot, takeSnapshot } from "./snapshot-store.ts";
import { findProgram } from "./find-program.ts";

/** The parts of a `LocalSandbox`. */
export interface LocalSandboxParts {
  readonly id: string;
  readonly spec: SandboxSpec;
  readonly confinement: Confinement;
  /** The environment variables of every command. */
  readonly env: Readonly<Record<string, string>>;
  readonly languages: readonly Language[];
  /** The program that isolates commands; null if they are not isolated. */
  readonly bubblewrap: Bubblewrap | null;
  /** The owner of the files, which isolated commands run as; null for the account of this program. */
  readonly owner: FileOwner | null;
  /** Called once, after all operations have ended. */
  readonly onClose: () => Promise<void>;
}

/** Real processes and files of this machine, in one directory. */
export class LocalSandbox implements Sandbox {
  readonly id: string;
  readonly backend = "local";
  readonly spec: SandboxSpec;
  readonly workingDir: string;
  readonly capabilities: SandboxCapabilities;
  readonly #parts: LocalSandboxParts;
  readonly #files: ConfinedFiles;
  readonly #commands = new Set<RunningCommand>();
  readonly #operations = new Set<Promise<unknown>>();
  /** Serializes snapshots and restores. */
  #lastCopy: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(parts: LocalSandboxParts) {
    this.#parts = parts;
    this.#files = new ConfinedFiles(parts.confinement, parts.owner);
    this.id = parts.id;
    this.spec = parts.spec;
    this.workingDir = parts.confinement.root;
    const languages = Object.freeze(parts.languages.map(({ name }) => name));
    this.capabilities = Object.freeze({ snapshot: true, reattach: true, languages });
  }

  get closed(): boolean {
    return this.#closing !== null;
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return this.#during(async () => {
      const list = checkCommand(command);
      return this.#run(list, typeof command === "string" ? command : list.join(" "), options);
    });
  }

  runCode(language: string, code: string, options: ExecOptions = {}): Promise<ExecResult> {
    return this.#during(async () => {
      const known = this.#parts.languages.find(({ name }) => name === language);
      if (known === undefined || typeof code !== "string") {
        const names = this.capabilities.languages.join(", ") || "none";
        throw new SandboxError("unsupported", `Code in ${show(language)} cannot be run here; languages are: ${names}.`);
      }
      // In the working directory of the code, where its imports are resolved.
      const name = scratchName(known.ending);
      const path = `${options.cwd ?? "."}/${name}`;
      checkExecOptions(options);
      const { pinned } = await this.#files.pinDirectory(options.cwd ?? ".");
      await pinned[Symbol.asyncDispose]();
      try {
        await this.#files.write(path, code);
        return await this.#run([known.program, name], `code in ${language}`, options);
      } finally {
        await this.#files.remove(path);
      }
    });
  }

  readFile(path: string, options: { readonly bytesMax?: number } = {}): Promise<Uint8Array> {
    return this.#during(() => this.#files.read(path, options.bytesMax));
  }

  writeFile(path: string, data: string | Uint8Array): Promise<void> {
    return this.#during(() => this.#files.write(path, data));
  }

  list(path = ".", options: { readonly recursive?: boolean; readonly limit?: number } = {}): Promise<SandboxFile[]> {
    return this.#during(() => this.#files.list(path, options));
  }

  exists(path: string): Promise<boolean> {
    return this.#during(() => this.#files.exists(path));
  }

  remove(path: string): Promise<boolean> {
    return this.#during(() => this.#files.remove(path));
  }

  snapshot(): Promise<JsonObject> {
    return this.#during(() => this.#inTurn(() => takeSnapshot(this.workingDir)));
  }

  restore(snapshot: JsonObject): Promise<void> {
    return this.#during(() => this.#inTurn(() => restoreSnapshot(this.workingDir, snapshot, this.#parts.owner)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const command of this.#commands) command.stop((output) => closed(output));
    // Wait for all operations: none may write into the directory while it is removed.
    await Promise.allSettled(this.#operations);
    await this.#parts.onClose();
  }

  /** Runs one operation; `close` waits for it. */
  #during<T>(operation: () => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(closed());
    const running = operation();
    this.#operations.add(running);
    const done = (): boolean => this.#operations.delete(running);
    running.then(done, done);
    return running;
  }

  #inTurn<T>(copy: () => Promise<T>): Promise<T> {
    const turn = this.#lastCopy.then(copy);
    this.#lastCopy = turn.catch(() => {});
    return turn;
  }

  async #run(list: readonly [string, ...string[]], name: string, options: ExecOptions): Promise<ExecResult> {
    checkExecOptions(options);
    options.signal?.throwIfAborted();
    const { realPath, pinned } = await this.#files.pinDirectory(options.cwd ?? ".");
    await using directory = pinned;
    const env = { ...this.#parts.env, ...options.env };
    await using contained = await containCommand(list, this.#parts, realPath, env);
    options.signal?.throwIfAborted();
    if (this.closed) throw closed();
    const command = new RunningCommand({
      program: contained.program,
      arguments: contained.arguments,
      name,
      // The child enters the open directory, even if its path was replaced meanwhile.
      cwd: directory.realPath,
      env,
      stdin: options.stdin ?? null,
      timeoutMs: commandTimeoutMs(this.spec, options.timeoutMs),
      signal: options.signal ?? null,
    } satisfies CommandPlan);
    this.#commands.add(command);
    try {
      return await contained.check(await command.result, name);
    } finally {
      this.#commands.delete(command);
    }
  }
}

function closed(output?: { readonly stdout: string; readonly stderr: string }): SandboxError {
  const message = "The sandbox is closed; open a new one.";
  return new SandboxError("sandbox_closed", message, output === undefined ? {} : { output });
}

/** A language, with the program that runs a file of it. */
interface Language {
  readonly name: string;
  readonly program: string;
  /** The file extension, which matters to some programs. */
  readonly ending: string;
}

const KNOWN: readonly Language[] = [
  { name: "bash", program: "bash", ending: "sh" },
  { name: "javascript", program: "node", ending: "js" },
  { name: "python", program: "python3", ending: "py" },
  { name: "sh", program: "/bin/sh", ending: "sh" },
];

/** The languages whose programs are installed on this machine. */
export async function findLanguages(env: Readonly<Record<string, string>>): Promise<Language[]> {
  const found = await Promise.all(KNOWN.map(({ program }) => findProgram(program, env["PATH"] ?? "", "/")));
  return KNOWN.filter((_, index) => found[index] !== null);
}
