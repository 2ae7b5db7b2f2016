import type { FileHandle } from "node:fs/promises";
import { FORMAT_VERSION } from "../../session/header.ts";
import { copyLog } from "./copy-log.ts";
import type { WriteOptions } from "./log-appender.ts";
import { readHeader } from "./log-header.ts";
import type { LogState } from "./log-state.ts";
import { replaceFile } from "./new-file.ts";

/**
 * Gives a log of an earlier version the present one, before anything of the present one is in it. Call it under the log's
 * lock. `"replaced"` means that another file is in the log's place now.
 */
export async function raiseVersion(
  state: LogState,
  handle: FileHandle,
  options: WriteOptions,
): Promise<"in place" | "replaced"> {
  const { log } = state.identity.places;
  // Another process may have done it already: what is known of the file may be older than its first line.
  const { header, versionAt } = await readHeader(handle, log);
  if (header.version === FORMAT_VERSION) return "in place";
  if (versionAt === null) {
    const raised = { ...header, version: FORMAT_VERSION } as const;
    await replaceFile(log, (to) => copyLog(state, state.end.seq, raised, to), options);
    return "replaced";
  }
  await handle.write(String(FORMAT_VERSION), versionAt);
  if (options.durability === "fsync") await handle.datasync();
  return "in place";
}
