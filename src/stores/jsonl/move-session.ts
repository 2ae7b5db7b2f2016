import { existsSync } from "node:fs";
import { readdir, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { makePrivateDirectory } from "../../internal/private-file.ts";
import { SessionError, show } from "../../session/errors.ts";
import { endLease } from "./file-leases.ts";
import type { LogFile } from "./log-file.ts";
import { syncDirectoryOf } from "./write-file-atomically.ts";
import { type LogPaths, pathsOf, TRASH_FOLDER, trashedName, trashFileName } from "./file-names.ts";
import { markOpenRuns, unmarkOpenRuns } from "./open-run-marks.ts";
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
    unmarkOpenRuns(paths);
    await moveSidecars(paths, target);
  });
  await files.forget(file);
}

/** Moves a session's files back from the trash. Call it under the directory's lock. */
export async function moveFromTrash({ paths, mayHaveOpenRuns }: LogFile): Promise<void> {
  const name = trashedName(basename(paths.log))?.name ?? basename(paths.log);
  const path = join(dirname(dirname(paths.log)), name);
  if (existsSync(path))
    throw new SessionError(
      "SESSION_EXISTS",
      `There is already a file ${show(path)}, where the deleted session's file was.`,
    );
  await moveSidecars(paths, pathsOf(path));
  if (mayHaveOpenRuns) markOpenRuns(pathsOf(path));
  await rename(paths.log, path);
}

/**
 * Removes the files of a deleted session for good, and those in which repairs kept unreadable bytes. The log is removed
 * last.
 */
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
 * Renames a session's file, and never overwrites another one. Call it under the directory's lock.
 *
 * @throws {SessionError} `SESSION_EXISTS` if there is a file with the new name.
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
 * Moves the index, checkpoints and lease of a log. Callers move them after the log when they delete a session, and before
 * it when they bring one back: so a crash in between leaves them in the directory of live sessions, and loses none.
 */
async function moveSidecars(from: LogPaths, to: LogPaths): Promise<void> {
  for (const part of ["index", "checkpoints", "lease"] as const) {
    if (!existsSync(from[part])) continue;
    await makePrivateDirectory(dirname(to[part]));
    await rename(from[part], to[part]);
  }
}
