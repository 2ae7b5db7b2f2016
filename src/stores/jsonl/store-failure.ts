import { SessionError } from "../../session/errors.ts";

/** The cached state of a log does not match its file any more, and must be read again. */
export class StaleView extends Error {}

/** The error for a failed file operation. */
export function storeFailed(what: string, cause: unknown): SessionError {
  const reason = cause instanceof Error ? cause.message.replace(/\.$/, "") : String(cause);
  return new SessionError("STORE_FAILED", `${what}: ${reason}.`, { cause });
}

/** Converts an error of the file system, or a stale view, to the `SessionError` that callers of the store get. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof StaleView) return storeFailed("The session's file kept changing while it was read", error);
  const fromSystem = error instanceof Error && !(error instanceof SessionError) && "syscall" in error;
  if (!fromSystem) return error;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === "ENOTDIR" && path !== undefined) {
    const message = `${path} is not a directory or not in one; name a directory for the store.`;
    return new SessionError("STORE_FAILED", message, { cause: error });
  }
  return storeFailed("The store's files could not be used", error);
}

/** Runs a task, and converts its errors with `asStoreError`. */
export async function withStoreErrors<T>(task: () => T | Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    throw asStoreError(error);
  }
}

/** Returns null for the error of a missing file, and rethrows every other error. */
export function missingAsNull(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
  throw error;
}

/** Runs a synchronous file operation, and returns null if the file is missing. */
export function nullIfMissing<T>(task: () => T): T | null {
  try {
    return task();
  } catch (error) {
    return missingAsNull(error);
  }
}
