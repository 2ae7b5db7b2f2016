import { checkPath } from "../complete/valid-arguments.ts";
import { existsSync, fstatSync, fsyncSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { resolve } from "node:path";
import { FileLock } from "../../internal/file-lock.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionBusyError, SessionError, show } from "../../session/errors.ts";
import { formatEntry } from "./log-line.ts";
import { writeFileAtomically, writeAll, writeLines } from "./write-file-atomically.ts";
import { pathsOf } from "./file-names.ts";
import { OpenFile, readChunk } from "./read-lines.ts";
import { type Damage, salvage, type SalvagedLog } from "./salvage.ts";

const LOCK_TIMEOUT_MS = 10_000;

/** The result of `repairFile`. */
export interface RepairReport {
  readonly path: string;
  readonly sessionId: string;
  /** The damaged parts. If there were none, the file is unchanged. */
  readonly damage: readonly Damage[];
  /** The path of the file with the bytes that could not be read, or null. */
  readonly sideFile: string | null;
}

/**
 * Repairs a damaged session file. Each entry that cannot be read is replaced by a `custom` entry `skein.lost` with its id and
 * parent, so that all other entries keep their path; that is what opening with `salvage` shows. The bytes that are removed
 * are kept in a second file beside it.
 *
 * @throws {SessionBusyError} while another process writes to the file.
 * @throws {SessionError} `SESSION_NOT_FOUND` if there is no such file, and the errors of opening the file.
 */
export async function repairFile(path: string): Promise<RepairReport> {
  checkPath(path, "path");
  const paths = pathsOf(resolve(path));
  // Check first: locking would create the folder for locks even if the file is missing.
  if (!existsSync(paths.log)) throw new SessionError("SESSION_NOT_FOUND", `There is no session file ${show(path)}.`);
  const lock = new FileLock(paths.lock);
  const holder = await lock.acquire(LOCK_TIMEOUT_MS);
  if (holder !== null) throw new SessionBusyError(path, `process ${holder.pid} on ${holder.host}`);
  try {
    using file = new OpenFile(paths.log);
    const log = salvage(file.fd, paths.log, fstatSync(file.fd));
    const report = { path: paths.log, sessionId: log.head.header.id, damage: log.damage, sideFile: null };
    if (log.damage.length === 0) return report;
    const sideFile = saveDamagedBytes(file.fd, paths.log, log.damage);
    await rewrite(paths.log, log);
    await unlink(paths.index).catch(() => {});
    return { ...report, sideFile };
  } finally {
    await lock.release();
  }
}

function saveDamagedBytes(fd: number, path: string, damage: readonly Damage[]): string | null {
  const pieces = new Map(damage.filter(({ length }) => length > 0).map(({ offset, length }) => [offset, length]));
  if (pieces.size === 0) return null;
  const sideFile = `${path}.damaged-${new Date().toISOString().replace(/[:.]/g, "-")}`;
  using side = new OpenFile(sideFile, "wx");
  for (const [offset, length] of pieces) writeAll(side.fd, readChunk(fd, offset, length));
  fsyncSync(side.fd);
  return sideFile;
}

async function rewrite(path: string, log: SalvagedLog): Promise<void> {
  const all = { after: -1, before: log.head.version, limit: log.head.version, reverse: false };
  const entries = [...log.read(all)].map((entry) => formatEntry(stored(entry)));
  const write = (fd: number): Promise<number> => writeLines(fd, [JSON.stringify(log.head.header), ...entries]);
  await writeFileAtomically(path, write, { durability: "fsync", clock: () => new Date(), replaces: true });
}

function stored(entry: Entry): Entry {
  if (entry.type !== "lost") return entry;
  const { id, parentId, timestamp, seq, reason } = entry;
  return { type: "custom", id, parentId, timestamp, seq, customType: "skein.lost", data: { reason } };
}
