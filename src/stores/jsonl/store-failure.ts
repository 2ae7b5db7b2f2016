import { SessionError } from "../../session/errors.ts";
import { StaleView } from "./log-access.ts";

/** The error for something that the file system would not do. */
export function storeFailed(what: string, cause: unknown): SessionError {
  const reason = cause instanceof Error ? cause.message.replace(/\.$/, "") : String(cause);
  return new SessionError("STORE_FAILED", `${what}: ${reason}.`, { cause });
}

/** The error that a caller of the store sees for what went wrong within it. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof StaleView)
    return storeFailed("The session's file changed again and again while it was read", error);
  const fromSystem = error instanceof Error && !(error instanceof SessionError) && "syscall" in error;
  if (!fromSystem) return error;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === "ENOTDIR" && path !== undefined)
    return new SessionError(
      "STORE_FAILED",
      `${path} is no directory, or lies in none; name a directory for the store.`,
      {
        cause: error,
      },
    );
  return storeFailed("The store's files could not be used", error);
}

/** Runs a task; what the file system or a changing file makes of it becomes a `SessionError`. */
export async function guarded<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    throw asStoreError(error);
  }
}
