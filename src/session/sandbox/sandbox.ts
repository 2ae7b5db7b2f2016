import type { JsonObject } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";

/** How a sandbox operation failed; the error of a tool passes it to the model as `error_kind`. */
export type SandboxFailure =
  | "timeout"
  | "os_error"
  | "file_not_found"
  | "unsupported"
  | "sandbox_closed"
  | "not_permitted"
  | "limit_exceeded"
  | "output_truncated";

/** An operation of a sandbox failed; `kind` says how. */
export class SandboxError extends SessionError {
  readonly kind: SandboxFailure;
  /** The output of the command before it was ended; null if there was no command. */
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

/**
 * Limits of one command and all processes that it starts. The guide to sandboxes says which limits cannot be enforced on some
 * machines.
 */
export interface SandboxLimits {
  /** Concurrent processes and threads (default 256). */
  readonly processes?: number;
  /** Memory (default 2 GiB). */
  readonly memoryBytes?: number;
  /** The size of each file that it writes (default 1 GiB). */
  readonly fileBytes?: number;
  /** Time (default 120, for a command without `timeoutMs`). If it is set, no command may take longer. */
  readonly seconds?: number;
}

/** The configuration of a sandbox. A backend refuses options that it does not support, by name. */
export interface SandboxSpec {
  /** The root of its files. By default, the sandbox makes a temporary directory, and removes it on close. */
  readonly workingDir?: string;
  /** Environment variables of every command. Of the host's environment, only the variables that a shell needs are inherited. */
  readonly env?: Readonly<Record<string, string>>;
  /** Paths outside of the root that commands may also read and write. */
  readonly allowPaths?: readonly string[];
  /**
   * Isolation of commands from the rest of the machine: `auto` isolates if the machine supports it, `required` isolates or fails, `off`
   * never isolates. `bubblewrap` and `none` are the former names of the last two.
   */
  readonly isolation?: "auto" | "required" | "off" | "none" | "bubblewrap";
  /** Whether isolated commands can use the network (default false). Commands without isolation can always use it. */
  readonly network?: boolean;
  readonly limits?: SandboxLimits;
  readonly image?: string;
  readonly entrypoint?: readonly string[];
  /** The timeout of commands without their own. */
  readonly timeoutMs?: number;
}

/** Options of a command. */
export interface ExecOptions {
  /** A path in the sandbox (default: its root). */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** The result of a command. An exit code other than 0 is a result, not a failure of the sandbox. */
export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly elapsedMs: number;
  /** Whether the middle of stdout or stderr was cut out because it was too long. */
  readonly truncated: boolean;
}

/** One item of a directory; `path` is relative to the sandbox's root, with forward slashes. */
export interface SandboxFile {
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  readonly sizeBytes: number;
}

/** A file that differs between two snapshots; a link counts as a file whose content is its target. */
export interface FileChange {
  /** Relative to the sandbox's root, with forward slashes. */
  readonly path: string;
  readonly change: "added" | "removed" | "changed";
  /** Its content in the first and in the second snapshot; only for small texts, and for a changed file both or neither. */
  readonly before?: string;
  readonly after?: string;
}

/** The differences between two snapshots, sorted by path. */
export interface FileChanges {
  readonly changes: readonly FileChange[];
  /** Whether changes beyond the limit were left out. */
  readonly truncated: boolean;
}

/** Optional capabilities of a sandbox. */
export interface SandboxCapabilities {
  /** `snapshot` and `restore` work. */
  readonly snapshot: boolean;
  /** The backend's `attach` can find it again, also from another process. */
  readonly reattach: boolean;
  /** The languages of `runCode`. */
  readonly languages: readonly string[];
}

/**
 * An environment in which tools run commands and code, and use files.
 *
 * Every sandbox keeps these promises; `skein/testing` checks each of them:
 * - Paths are relative to its root, and cannot leave it by `..`, by an absolute path or through a link: `not_permitted`.
 * - If a command times out or is aborted, all of its processes have ended when the call rejects.
 * - Output is limited: its beginning and end are kept, and `truncated` is set.
 * - Every failure is a `SandboxError` with a `kind`, except an abort, which rejects with the signal's reason.
 * - After `close`, every method rejects with the kind `sandbox_closed`.
 */
export interface Sandbox {
  /** The id for `attach`. */
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
  /** Removes a file, or a directory with its contents; false if it does not exist. */
  remove(path: string): Promise<boolean>;
  /** Takes a snapshot of the files; the returned value identifies it and can be stored in a checkpoint. */
  snapshot(): Promise<JsonObject>;
  /** Restores the files of a snapshot of this or another sandbox of the same backend. */
  restore(snapshot: JsonObject): Promise<void>;
  /** Frees the sandbox; idempotent. Sessions call it when the last reference is released. */
  close(): Promise<void>;
}

/** What commands of a sandbox can reach, shown to a person who approves a call. */
export interface SandboxReach {
  /** Their working directory, as a path of the host; null if it is not on this machine, or does not exist yet. */
  readonly directory: string | null;
  /** Whether they are isolated from the rest of the machine. */
  readonly isolated: boolean;
  /** Whether they can use the network. */
  readonly network: boolean;
}

/** Opens sandboxes of one kind. */
export interface SandboxBackend {
  /** What commands of a sandbox with this spec could reach, without opening one (default: unknown). */
  reach?(spec: SandboxSpec): Promise<SandboxReach>;
  open(spec: SandboxSpec): Promise<Sandbox>;
  /** Attaches to an open sandbox by its id. @throws {SandboxError} `file_not_found` if it no longer exists. */
  attach?(id: string, spec: SandboxSpec): Promise<Sandbox>;
  /** Deletes a snapshot; false if it does not exist. */
  deleteSnapshot?(snapshot: JsonObject): Promise<boolean>;
  /** Lists the stored snapshots, if the backend can. */
  listSnapshots?(): Promise<readonly JsonObject[]>;
  /**
   * The files that differ between two snapshots: in content, mode or existence. A directory is listed only if it is empty or its
   * mode differs. The number of changes and the amount of text are limited.
   *
   * @throws {SandboxError} `unsupported` for a value that is not a snapshot of this backend, `file_not_found` for a deleted
   * snapshot.
   */
  compareSnapshots?(from: JsonObject, to: JsonObject): Promise<FileChanges>;
  /** Whether the files of a sandbox with this spec persist until the next one is opened (default false). */
  keepsFiles?(spec: SandboxSpec): boolean;
}
