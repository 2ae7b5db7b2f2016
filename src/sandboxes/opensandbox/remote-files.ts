import { posix } from "node:path";
import { uuidv7 } from "../../internal/uuid.ts";
import { show } from "../../session/errors.ts";
import { SandboxError, type SandboxFile } from "../../session/sandbox/sandbox.ts";
import type { RemoteSandbox } from "./opensandbox-client.ts";
import { statScript, moveScript, removeScript } from "./remote-script.ts";
import type { RemoteShell } from "./remote-shell.ts";

const READ_BYTES_MAX = 32 * 1024 * 1024;
/** Deeper than any path can be: lists all levels. */
const DEPTH_MAX = 4096;
const TEMPORARY = /(^|\/)\.skein-[0-9a-f-]{36}\.[a-z]+$/;

/**
 * The files of a remote sandbox, by paths that do not leave its root.
 *
 * Links are resolved in the sandbox right before each step. A process in the sandbox that replaces a directory by a link
 * between the check and the use can redirect it, but only within the sandbox, which the server's container confines.
 */
export class RemoteFiles {
  readonly #remote: RemoteSandbox;
  readonly #shell: RemoteShell;
  /** The root and the allowed paths. */
  readonly #roots: readonly string[];
  readonly #scratch: string;

  constructor(remote: RemoteSandbox, shell: RemoteShell, roots: readonly string[], scratch: string) {
    this.#remote = remote;
    this.#shell = shell;
    this.#roots = roots;
    this.#scratch = scratch;
  }

  /** The absolute path in the sandbox. Links are checked there. */
  absolute(path: string): string {
    if (typeof path !== "string" || path.includes("\0")) {
      throw new SandboxError("not_permitted", `The path ${show(path)} cannot name a file.`);
    }
    const root = this.#roots[0] ?? "/";
    const absolute = posix.resolve(root, path);
    if (!posix.isAbsolute(path) && !this.#roots.some((each) => isIn(absolute, each))) throw outside(path);
    return absolute;
  }

  async read(path: string, bytesMax: number = READ_BYTES_MAX): Promise<Uint8Array> {
    if (!Number.isSafeInteger(bytesMax) || bytesMax < 0) {
      throw new SandboxError("unsupported", `A limit of ${show(bytesMax)} bytes is not a whole number from 0 up.`);
    }
    const { type, sizeBytes, realPath } = await this.#look(path);
    if (type !== "file") throw notAFile(path);
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    if (sizeBytes <= bytesMax) {
      for await (const chunk of this.#remote.read(realPath)) {
        bytes += chunk.length;
        if (bytes > bytesMax) break;
        chunks.push(chunk);
      }
      if (bytes <= bytesMax) return new Uint8Array(Buffer.concat(chunks));
    }
    throw new SandboxError("output_truncated", `The file ${show(path)} is larger than ${bytesMax} bytes.`);
  }

  async write(path: string, data: string | Uint8Array): Promise<void> {
    if (typeof data !== "string" && !(data instanceof Uint8Array)) {
      throw new SandboxError("unsupported", `The data for ${show(path)} is neither a text nor bytes.`);
    }
    const absolute = this.absolute(path);
    const id = uuidv7();
    const scratch = `${this.#scratch}/${id}-file`;
    await this.#remote.write(scratch, data);
    await this.#asked(path, moveScript(this.#roots, scratch, absolute, `.skein-${id}.tmp`));
  }

  async list(
    path: string,
    { recursive = false, limit = Number.POSITIVE_INFINITY }: { recursive?: boolean; limit?: number },
  ): Promise<SandboxFile[]> {
    if (typeof limit !== "number" || !(limit >= 0)) {
      throw new SandboxError("unsupported", `A limit of ${show(limit)} items is not a number from 0 up.`);
    }
    const { type, realPath } = await this.#look(path);
    if (type !== "directory") {
      throw new SandboxError("os_error", `The path ${show(path)} is not a directory, so it has no items.`);
    }
    const files = await this.#remote.list(realPath, recursive ? DEPTH_MAX : 1);
    const name = this.#nameOf(path, realPath);
    return files
      .filter((file) => isIn(file.path, realPath) && !TEMPORARY.test(file.path))
      .map((file) => ({
        path: posix.join(name, posix.relative(realPath, file.path)),
        type: file.type ?? "other",
        sizeBytes: file.size ?? 0,
      }))
      .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
      .slice(0, limit);
  }

  async exists(path: string): Promise<boolean> {
    const [kind] = await this.#shell.ask(statScript(this.#roots, this.absolute(path)));
    if (kind === "outside") throw outside(path);
    return kind !== "missing";
  }

  async remove(path: string): Promise<boolean> {
    const [kind] = await this.#asked(path, removeScript(this.#roots, this.absolute(path)));
    return kind !== "absent";
  }

  async #look(path: string): Promise<{ readonly type: string; readonly sizeBytes: number; readonly realPath: string }> {
    const [type = "", size, realPath = ""] = await this.#asked(path, statScript(this.#roots, this.absolute(path)));
    return { type, sizeBytes: Number(size), realPath: Buffer.from(realPath, "base64").toString("utf8") };
  }

  async #asked(path: string, script: string): Promise<readonly string[]> {
    const fields = await this.#shell.ask(script);
    switch (fields[0]) {
      case "outside":
        throw outside(path);
      case "root":
        throw new SandboxError("not_permitted", `The path ${show(path)} is a root of the sandbox and stays.`);
      case "missing":
        throw new SandboxError("file_not_found", `The path ${show(path)} was not found in the sandbox.`);
      case "not-file":
        throw notAFile(path);
      case "failed":
        throw new SandboxError("os_error", `The path ${show(path)} cannot be changed in the sandbox.`);
      default:
        return fields;
    }
  }

  /** The name of a real path for the caller: relative to the root if it is inside, else absolute. */
  #nameOf(path: string, realPath: string): string {
    const root = this.#roots[0] ?? "/";
    for (const each of [this.absolute(path), realPath]) if (isIn(each, root)) return posix.relative(root, each);
    return realPath;
  }
}

function isIn(realPath: string, folder: string): boolean {
  return realPath === folder || realPath.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

function outside(path: string): SandboxError {
  return new SandboxError(
    "not_permitted",
    `The path ${show(path)} is outside of the sandbox; use one in its root, or name it in allowPaths.`,
  );
}

function notAFile(path: string): SandboxError {
  return new SandboxError("os_error", `The path ${show(path)} is not a file.`);
}
