import type { JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
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
import { checkCommand, checkExecOptions } from "../local/check-spec.ts";
import { type OpenSandboxOptions, type RemoteSandbox, TIMEOUT_SECONDS } from "./opensandbox-client.ts";
import { RemoteFiles } from "./remote-files.ts";
import { type CommandSource, quote } from "./remote-script.ts";
import { RemoteShell } from "./remote-shell.ts";
import { restoreSnapshot, snapshotName, takeSnapshot } from "./remote-snapshots.ts";

/** Languages, each with the program that runs a file of it. */
export const LANGUAGES: readonly { readonly name: string; readonly program: string; readonly ending: string }[] = [
  { name: "bash", program: "bash", ending: "sh" },
  { name: "javascript", program: "node", ending: "js" },
  { name: "python", program: "python3", ending: "py" },
  { name: "sh", program: "/bin/sh", ending: "sh" },
];

/** The parts of an `OpenSandbox`. */
export interface OpenSandboxParts {
  readonly remote: RemoteSandbox;
  readonly spec: SandboxSpec;
  readonly options: OpenSandboxOptions;
  /** The root and the allowed paths, with links resolved. */
  readonly roots: readonly string[];
  /** A directory in the sandbox for internal files. */
  readonly scratch: string;
  /** The installed interpreters. */
  readonly programs: readonly string[];
}

const RENEW_SPARE_SECONDS = 60;
/** Maximum length of one argument, below the limit of the system. */
const ARGUMENT_BYTES_MAX = 60_000;

/** One directory of a sandbox that an OpenSandbox server runs. */
export class OpenSandbox implements Sandbox {
  readonly id: string;
  readonly backend = "opensandbox";
  readonly spec: SandboxSpec;
  readonly workingDir: string;
  readonly capabilities: SandboxCapabilities;
  readonly #parts: OpenSandboxParts;
  readonly #shell: RemoteShell;
  readonly #files: RemoteFiles;
  readonly #ending = new AbortController();
  readonly #operations = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;
  #keptUntilMs: number;

  constructor(parts: OpenSandboxParts) {
    const { remote, spec, roots, scratch, programs } = parts;
    this.#parts = parts;
    this.#shell = new RemoteShell(remote);
    this.#files = new RemoteFiles(remote, this.#shell, roots, scratch);
    this.id = remote.id;
    this.spec = spec;
    this.workingDir = roots[0] ?? "/";
    const languages = LANGUAGES.filter(({ program }) => programs.includes(program)).map(({ name }) => name);
    this.capabilities = Object.freeze({ snapshot: true, reattach: true, languages: Object.freeze(languages) });
    this.#keptUntilMs = performance.now() + this.#keepSeconds * 1000;
  }

  get closed(): boolean {
    return this.#closing !== null;
  }

  get #keepSeconds(): number {
    const { timeoutSeconds = TIMEOUT_SECONDS } = this.#parts.options;
    return timeoutSeconds ?? Number.POSITIVE_INFINITY;
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return this.#during(async () => {
      const list = checkCommand(command);
      if (typeof command !== "string") return this.#run({ list }, list.join(" "), options);
      return this.#run(await this.#textSource(command), command, options);
    });
  }

  runCode(language: string, code: string, options: ExecOptions = {}): Promise<ExecResult> {
    return this.#during(async () => {
      const known = LANGUAGES.find(({ name }) => name === language && this.capabilities.languages.includes(name));
      if (known === undefined || typeof code !== "string") {
        const names = this.capabilities.languages.join(", ") || "none";
        throw new SandboxError("unsupported", `Code in ${show(language)} cannot be run here; languages are: ${names}.`);
      }
      const { program, ending } = known;
      const source = { code: await this.#upload("code", code), program, ending };
      return this.#run(source, `code in ${language}`, options);
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
    return this.#during(() => takeSnapshot(this.#parts.remote, this.spec.workingDir ?? null));
  }

  restore(snapshot: JsonObject): Promise<void> {
    return this.#during(async () => {
      snapshotName(snapshot);
      await restoreSnapshot({ ...this.#parts, root: this.workingDir }, snapshot, this.#parts.options, this.spec);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { remote, scratch, options } = this.#parts;
    this.#ending.abort(closed());
    await Promise.allSettled(this.#operations);
    try {
      if (options.keep === true) await this.#shell.ask(`rm -rf -- ${quote(scratch)}; printf 'done|end|'`);
      else await remote.kill();
    } catch (error) {
      // The server, or another handle, may have ended it already.
      if (!(error instanceof SandboxError && error.kind === "file_not_found")) throw error;
    } finally {
      await remote.disconnect();
    }
  }

  /** Runs one operation; `close` waits for it. */
  #during<T>(operation: () => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(closed());
    const running = this.#renew(0).then(operation);
    this.#operations.add(running);
    const done = (): boolean => this.#operations.delete(running);
    running.then(done, done);
    return running;
  }

  /** Extends the sandbox's lease, long before the server would end it. */
  async #renew(needMs: number): Promise<void> {
    if (this.#keepSeconds === Number.POSITIVE_INFINITY) return;
    const needUntilMs = performance.now() + Math.max(needMs, (this.#keepSeconds * 1000) / 2);
    if (needUntilMs <= this.#keptUntilMs) return;
    const seconds = Math.max(this.#keepSeconds, needMs / 1000) + RENEW_SPARE_SECONDS;
    this.#keptUntilMs = performance.now() + seconds * 1000;
    // If the sandbox no longer exists, the operation itself fails.
    await this.#parts.remote.renew(seconds).catch(() => {});
  }

  async #textSource(text: string): Promise<CommandSource> {
    return Buffer.byteLength(text) <= ARGUMENT_BYTES_MAX ? { text } : { file: await this.#upload("script", text) };
  }

  async #upload(name: string, data: string | Uint8Array, id: string = uuidv7()): Promise<string> {
    const path = `${this.#parts.scratch}/${id}-${name}`;
    await this.#parts.remote.write(path, data);
    return path;
  }

  async #run(command: CommandSource, name: string, options: ExecOptions): Promise<ExecResult> {
    checkExecOptions(options);
    options.signal?.throwIfAborted();
    const cwdName = options.cwd ?? ".";
    const cwd = this.#files.absolute(cwdName);
    const commandId = uuidv7();
    const timeoutMs = commandTimeoutMs(this.spec, options.timeoutMs);
    if (options.stdin !== undefined) await this.#upload("in", options.stdin, commandId);
    await this.#renew(timeoutMs);
    return this.#shell.run({
      roots: this.#parts.roots,
      commandId,
      scratch: `${this.#parts.scratch}/${commandId}`,
      cwd,
      cwdName,
      env: { ...this.spec.env, ...options.env },
      command,
      hasInput: options.stdin !== undefined,
      name,
      timeoutMs,
      signals: [this.#ending.signal, ...(options.signal === undefined ? [] : [options.signal])],
    });
  }
}

function closed(): SandboxError {
  return new SandboxError("sandbox_closed", "The sandbox is closed; open a new one, or attach to it again.");
}
