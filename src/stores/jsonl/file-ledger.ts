import { createHash } from "node:crypto";
import { appendFile, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { makePrivateDirectory, PRIVATE_FILE_MODE, replacePrivateFile } from "../../internal/private-file.ts";
import type { LedgerHour, LedgerPage, LedgerTable } from "../../session/ledger.ts";
import { STATE_FOLDER } from "./file-names.ts";
import type { SessionFiles } from "./session-files.ts";
import { missingAsNull, withStoreErrors } from "./store-failure.ts";

/**
 * The ledger of budgets in files, two for each user: one with the page, and one with a line for each bucket. They are written
 * under the directory's lock. Their names are hashes, as a user id can be any text.
 */
export function createFileLedger(files: SessionFiles): LedgerTable {
  const folder = join(files.options.directory, STATE_FOLDER, "spending");
  const pathOf = (userId: string, ending: string): string =>
    join(folder, `${createHash("sha256").update(userId).digest("hex")}.${ending}`);
  const read = async (userId: string): Promise<LedgerPage | null> => {
    const text = await readFile(pathOf(userId, "page"), "utf8").catch(missingAsNull);
    return text === null ? null : (JSON.parse(text) as LedgerPage);
  };
  return {
    read: (userId) => withStoreErrors(() => read(userId)),
    replace: (userId, expected, page, ended) =>
      files.change(async () => {
        if (((await read(userId))?.stamp ?? null) !== expected) return false;
        await makePrivateDirectory(folder);
        // A line that a crash cut short is followed by a new line. A bucket that was written before a crash is written again
        // with the same totals, as the page does not have the next hour yet.
        if (ended !== null)
          await appendFile(pathOf(userId, "hours"), `\n${JSON.stringify(ended)}\n`, { mode: PRIVATE_FILE_MODE });
        await replacePrivateFile(pathOf(userId, "page"), JSON.stringify(page), {
          flush: files.options.durability === "fsync",
        });
        return true;
      }),
    hourBefore: (userId, before) =>
      withStoreErrors(async () => {
        const text = (await readFile(pathOf(userId, "hours"), "utf8").catch(missingAsNull)) ?? "";
        return text
          .split("\n")
          .flatMap(bucketIn)
          .reduce<LedgerHour | null>(
            (last, each) => (each.hour < before && each.hour > (last?.hour ?? -1) ? each : last),
            null,
          );
      }),
    erase: (userId) =>
      files.change(async () => {
        for (const ending of ["page", "hours"]) await rm(pathOf(userId, ending), { force: true });
      }),
  };
}

/** The bucket in a line; none in an empty line or one that was cut short. */
function bucketIn(line: string): readonly LedgerHour[] {
  try {
    return [JSON.parse(line) as LedgerHour];
  } catch {
    return [];
  }
}
