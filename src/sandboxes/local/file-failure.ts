import { SandboxError, type SandboxFailure } from "../../session/sandbox/sandbox.ts";
import { show } from "../../session/errors.ts";

const KINDS: Readonly<Record<string, SandboxFailure>> = {
  ENOENT: "file_not_found",
  ENOTDIR: "file_not_found",
  EACCES: "not_permitted",
  EPERM: "not_permitted",
  EROFS: "not_permitted",
  // Files are opened with O_NOFOLLOW, so this is a loop, or a link that was put there meanwhile.
  ELOOP: "not_permitted",
};

/** The code of a failed system call, or null for another error. */
export function failureCode(error: unknown): string | null {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return error instanceof Error && typeof code === "string" ? code : null;
}

/** Whether a system call failed because the path does not exist. */
export function isMissing(error: unknown): boolean {
  const code = failureCode(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Runs work on a path of the sandbox; converts a failed system call to a `SandboxError` that names the path. */
export async function onPath<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = failureCode(error);
    if (error instanceof SandboxError || code === null) throw error;
    const kind = KINDS[code] ?? "os_error";
    const problem = kind === "file_not_found" ? "was not found" : `cannot be used (${code})`;
    throw new SandboxError(kind, `The path ${show(path)} ${problem} in the sandbox.`, { cause: error });
  }
}

/** Runs work; converts a failed system call to a `SandboxError` that names the operation. */
export async function wrapFailure<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SandboxError || failureCode(error) === null) throw error;
    throw new SandboxError("os_error", `The sandbox could not ${what} (${(error as Error).message}).`, {
      cause: error,
    });
  }
}
