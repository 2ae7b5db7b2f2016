import { rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { makePrivateDirectory } from "../../internal/private-file.ts";
import { SessionError, show } from "../../session/errors.ts";
import { type LogFile, missingAsNull } from "./log-file.ts";
import { type Places, placesOf, TRASH_FOLDER, trashedName, trashFileName } from "./places.ts";
import { exists } from "./session-directory.ts";

/** Moves a session's files to the trash. Call it under the locks of the directory and of the session. */
export async function moveToTrash({ places }: LogFile, deletedAt: string): Promise<void> {
  const name = trashFileName(basename(places.log), deletedAt);
  const target = placesOf(join(dirname(places.log), TRASH_FOLDER, name));
  await makePrivateDirectory(dirname(target.log));
  await rename(places.log, target.log);
  await moveSidecars(places, target);
}

/** Moves a session's files back from the trash. Call it under the directory's lock. */
export async function moveFromTrash({ places }: LogFile): Promise<string> {
  const name = trashedName(basename(places.log))?.name ?? basename(places.log);
  const path = join(dirname(dirname(places.log)), name);
  if (await exists(path))
    throw new SessionError("SESSION_EXISTS", `There is a file ${show(path)} in the deleted session's place.`);
  await moveSidecars(places, placesOf(path));
  await rename(places.log, path);
  return path;
}

/** Removes for good a session that was deleted. */
export async function removeFromTrash({ places }: LogFile): Promise<void> {
  for (const path of [places.log, places.index, places.checkpoints, places.lease])
    await unlink(path).catch(missingAsNull);
}

/**
 * What belongs to a log stays with the live sessions while only a part is moved, so that a crash in between loses
 * none of it.
 */
async function moveSidecars(from: Places, to: Places): Promise<void> {
  for (const part of ["index", "checkpoints", "lease"] as const) {
    if (!(await exists(from[part]))) continue;
    await makePrivateDirectory(dirname(to[part]));
    await rename(from[part], to[part]);
  }
}
