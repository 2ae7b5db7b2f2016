import type { JsonObject } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";

/** What went wrong in a sandbox; a tool's error carries it to the model as `error_kind`. */
export type SandboxFailure =
  | "timeout"
  | "os_error"
  | "file_not_found"
  | "unsupported"
  | "sandbox_closed"
  | "not_permitted"
  | "limit_exceeded"
  | "output_truncated";

/** A sandbox could not do what it was asked; `kind` says which way it failed. */
export class SandboxError extends SessionError {
  readonly kind: SandboxFailure;
  /** What the command had written before it was ended, where there was a command. */
  readonly output: { readonly stdout: string; readonly stderr: string } | null;
  constructor(
    kind: SandboxFailure,
    message: string,
    options: { cause?: unknown; output?: { readonly stdout: string; readonly stderr: string } } = {},
  ) {
    super("SANDBOX_FAILED", message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.output = options.output ?? null;
  }
}

/** How much one command may use, with all that it starts. What the machine cannot hold is in the guide to sandboxes. */
export interface SandboxLimits {
  /** Processes and threads at once (default 256). */
  readonly processes?: number;
  /** Memory (default 2 GiB). */
  readonly memoryBytes?: number;
  /** The size of each file that it writes (default 1 GiB). */
  readonly fileBytes?: number;
  /** Time (default 120, for a command that names no limit of its own). Where it is given, no command has more. */
  readonly seconds?: number;
}

/** What a sandbox is to be like. A backend refuses what it cannot give, by name. */
export interface SandboxSpec {
  /** The root of its files. Without one the sandbox makes a directory of its own, and removes it on close. */
  readonly workingDir?: string;
  /** Variables of every command. Nothing of the host's environment but what a shell needs is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  /** Paths outside of the root that may be read and written too. */
  readonly allowPaths?: readonly string[];
  /**
   * Whether commands are kept apart from the rest of the machine: where that works (`auto`), always or not at all
   * (`required`), or never (`off`). `bubblewrap` and `none` are older words for the last two.
   */
  readonly isolation?: "auto" | "required" | "off" | "none" | "bubblewrap";
  /** Whether isolated commands can use the network (default: no). Those that are not isolated always can. */
  readonly network?: boolean;
  readonly limits?: SandboxLimits;
  readonly image?: string;
  readonly entrypoint?: readonly string[];
  /** The limit of a command that names none of its own. */
  readonly timeoutMs?: number;
}

/** How a command is run. */
export interface ExecOptions {
  /** A path in the sandbox (default: its root). */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** What a command came to. A code other than 0 is an answer, not a failure of the sandbox. */
export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly elapsedMs: number;
  /** Whether the middle of stdout or stderr was left out because there was too much of it. */
  readonly truncated: boolean;
}

/** One item of a directory; `path` is relative to the sandbox's root, with forward slashes. */
export interface SandboxFile {
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  readonly sizeBytes: number;
}

/** A file that two snapshots hold differently; a link is a file that says where it points. */
export interface FileChange {
  /** Relative to the sandbox's root, with forward slashes. */
  readonly path: string;
  readonly change: "added" | "removed" | "changed";
  /** What it said in the first snapshot and says in the second: of small texts only, and of a changed file both or neither. */
  readonly before?: string;
  readonly after?: string;
}

/** What is different between two snapshots, sorted by path. */
export interface FileChanges {
  readonly changes: readonly FileChange[];
  /** Whether there are more changes than these. */
  readonly truncated: boolean;
}

/** What a sandbox can do beyond running commands and keeping files. */
export interface SandboxCapabilities {
  /** `snapshot` and `restore` work. */
  readonly snapshot: boolean;
  /** The backend's `attach` finds it again, from another process too. */
  readonly reattach: boolean;
  /** The languages of `runCode`. */
  readonly languages: readonly string[];
}

/**
 * Where tools act: commands, files, code.
 *
 * Every sandbox keeps these promises; `skein/testing` checks each of them:
 * - Paths are relative to its root, and none leaves it, by `..`, by an absolute path or through a link: `not_permitted`.
 * - A command that times out or is aborted is gone, with everything it started, when the call rejects.
 * - Output is limited, its beginning and end are kept, and `truncated` says so.
 * - Every failure is a `SandboxError` with a `kind`, but an abort, which rejects with the signal's reason.
 * - After `close`, every method rejects with the kind `sandbox_closed`.
 */
export interface Sandbox {
  /** What `attach` finds it by. */
  readonly id: string;
  /** The name of the backend that opened it. */
  readonly backend: string;
  readonly spec: SandboxSpec;
  /** The root as commands see it. */
  readonly workingDir: string;
  readonly capabilities: SandboxCapabilities;
  readonly closed: boolean;
  /** Runs a command: a text through the sandbox's shell, a list as a program with its arguments. */
  exec(command: string | readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Runs a program given as text, in one of `capabilities.languages`. */
  runCode(language: string, code: string, options?: ExecOptions): Promise<ExecResult>;
  /** @throws {SandboxError} `file_not_found`; `output_truncated` for a file larger than `bytesMax` (default 32 MiB). */
  readFile(path: string, options?: { readonly bytesMax?: number }): Promise<Uint8Array>;
  /** Writes a whole file and the directories above it; a reader sees the old file or the new one. */
  writeFile(path: string, data: string | Uint8Array): Promise<void>;
  /** The items of a directory (default: the root), sorted by path; with `recursive`, of all below it too, links not followed. */
  list(path?: string, options?: { readonly recursive?: boolean; readonly limit?: number }): Promise<SandboxFile[]>;
  exists(path: string): Promise<boolean>;
  /** Removes a file, or a directory with all in it; false when there was none. */
  remove(path: string): Promise<boolean>;
  /** Keeps the files as they are now; the value names the snapshot and can be stored in a checkpoint. */
  snapshot(): Promise<JsonObject>;
  /** Brings the files back to a snapshot of this sandbox or of another one of the same backend. */
  restore(snapshot: JsonObject): Promise<void>;
  /** Frees the sandbox; safe to call twice. Sessions call it when the last of them lets go. */
  close(): Promise<void>;
}

/** What commands can reach from a sandbox, for whoever is asked to let one run. */
export interface SandboxReach {
  /** The directory that they start in, as the host knows it; null where it is none of this machine, or not made yet. */
  readonly directory: string | null;
  /** Whether they are kept apart from the rest of the machine. */
  readonly isolated: boolean;
  /** Whether they can use the network. */
  readonly network: boolean;
}

/** Opens sandboxes of one kind. */
export interface SandboxBackend {
  /** What commands of a sandbox with this spec could reach, without opening one (default: nothing is known). */
  reach?(spec: SandboxSpec): Promise<SandboxReach>;
  open(spec: SandboxSpec): Promise<Sandbox>;
  /** A sandbox that was left open, by its id. @throws {SandboxError} `file_not_found` when it is gone. */
  attach?(id: string, spec: SandboxSpec): Promise<Sandbox>;
  /** Frees the space of a snapshot; false when there was none. */
  deleteSnapshot?(snapshot: JsonObject): Promise<boolean>;
  /** The snapshots that are kept, where that can be told. */
  listSnapshots?(): Promise<readonly JsonObject[]>;
  /**
   * The files that two snapshots hold differently: in what they say, in their mode, or in being there at all. A directory
   * counts by itself where it is empty or has another mode. How many changes and how much text there can be is limited.
   *
   * @throws {SandboxError} `unsupported` for a value that is no snapshot of this backend, `file_not_found` for one that is gone.
   */
  compareSnapshots?(from: JsonObject, to: JsonObject): Promise<FileChanges>;
  /** Whether the files of a sandbox with this spec are there again when the next one is opened (default: they are not). */
  keepsFiles?(spec: SandboxSpec): boolean;
}
