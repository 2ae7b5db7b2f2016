import { rename } from "node:fs/promises";
import { SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import { exists } from "./session-directory.ts";
import type { SessionFiles } from "./session-files.ts";
import { syncDirectoryOf } from "./sync-directory.ts";

/**
 * Gives a session's file another name, and never that of another file. Call it under the directory's lock.
 *
 * @throws {SessionError} `SESSION_EXISTS` when there is a file of the new name.
 */
export async function renameSession(
  files: SessionFiles,
  sessionId: string,
  nameFor: (path: string) => string,
): Promise<string> {
  const file = await files.live.find(sessionId);
  if (file === null) throw new SessionNotFoundError(sessionId);
  const path = nameFor(file.places.log);
  if (path === file.places.log) return path;
  const writer = files.writerTo(file);
  await writer.exclusively(async ({ log }) => {
    if (await exists(path)) {
      throw new SessionError("SESSION_EXISTS", `There is already a file ${show(path)}; move it away first.`);
    }
    await writer.detach();
    await rename(log, path);
    if (files.options.durability === "fsync") await syncDirectoryOf(path);
  });
  await files.forget(file);
  await files.live.open(path);
  return path;
}
