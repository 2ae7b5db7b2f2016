import { existsSync } from "node:fs";
import { readdir, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { makePrivateDirectory } from "../../internal/private-file.ts";
import { SessionError, show } from "../../session/errors.ts";
import { endLease } from "./file-leases.ts";
import type { LogFile } from "./log-file.ts";
import { syncDirectoryOf } from "./new-file.ts";
import { type LogPaths, pathsOf, TRASH_FOLDER, trashedName, trashFileName } from "./file-names.ts";
import type { SessionFiles } from "./session-files.ts";
import { missingAsNull } from "./store-failure.ts";

/** Moves a session's files to the trash. Call it under the directory's lock. */
export async function moveToTrash(files: SessionFiles, file: LogFile): Promise<void> {
  const { writer } = file;
  await writer.exclusively(async (paths) => {
    const now = files.options.clock();
    await endLease(paths.lease, null, now);
    writer.detach();
    const name = trashFileName(basename(paths.log), now.toISOString());
    const target = pathsOf(join(dirname(paths.log), TRASH_FOLDER, name));
    await makePrivateDirectory(dirname(target.log));
    await rename(paths.log, target.log);
    await moveSidecars(paths, target);
  });
  await files.forget(file);
}

/** Moves a session's files back from the trash. Call it under the directory's lock. */
export async function moveFromTrash({ paths }: LogFile): Promise<void> {
  const name = trashedName(basename(paths.log))?.name ?? basename(paths.log);
  const path = join(dirname(dirname(paths.log)), name);
  if (existsSync(path))
    throw new SessionError("SESSION_EXISTS", `There is a file ${show(path)} in the deleted session's place.`);
  await moveSidecars(paths, pathsOf(path));
  await rename(paths.log, path);
}

/** Removes for good a session that was deleted, with what repairs of its file have set aside. The log goes last. */
export async function removeFromTrash({ paths }: LogFile): Promise<void> {
  const directory = dirname(dirname(paths.log));
  const name = trashedName(basename(paths.log))?.name ?? basename(paths.log);
  const aside = ((await readdir(directory).catch(missingAsNull)) ?? []).filter((each) =>
    each.startsWith(`${name}.damaged-`),
  );
  const beside = [paths.index, paths.checkpoints, paths.lease, ...aside.map((each) => join(directory, each))];
  for (const path of [...beside, paths.log]) await unlink(path).catch(missingAsNull);
}

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
  const file = await files.live.existing(sessionId);
  const { paths, writer } = file;
  const path = nameFor(paths.log);
  if (path === paths.log) return path;
  await writer.exclusively(async ({ log }) => {
    if (existsSync(path)) {
      throw new SessionError("SESSION_EXISTS", `There is already a file ${show(path)}; move it away first.`);
    }
    writer.detach();
    await rename(log, path);
    if (files.options.durability === "fsync") await syncDirectoryOf(path);
  });
  await files.forget(file);
  await files.live.open(path);
  return path;
}

/**
 * What belongs to a log stays with the live sessions while only a part is moved, so that a crash in between loses
 * none of it.
 */
async function moveSidecars(from: LogPaths, to: LogPaths): Promise<void> {
  for (const part of ["index", "checkpoints", "lease"] as const) {
    if (!existsSync(from[part])) continue;
    await makePrivateDirectory(dirname(to[part]));
    await rename(from[part], to[part]);
  }
}
