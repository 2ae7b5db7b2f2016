import { fstatSync } from "node:fs";
import { basename } from "node:path";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { emptyHead, type PathSummary, type SessionHead, stepHead } from "../../session/fold.ts";
import { createHeader, type SessionHeader } from "../../session/header.ts";
import { isSessionId } from "../../session/id.ts";
import type { SettingsNode, SettingsTable } from "../../session/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { parseHeader, readFirstLine } from "./log-header.ts";
import type { FileStamp } from "./log-index.ts";
import type { RawLine } from "./log-line.ts";
import { parseFileName } from "./places.ts";
import { readLines } from "./read-lines.ts";
import { type RecoveredItem, recoverLine, relink, type RelinkedLog } from "./relink.ts";
import { withFile } from "./store-failure.ts";

/** One place where a file cannot be read as it is. */
export interface Damage {
  readonly line: number;
  readonly offset: number;
  readonly length: number;
  readonly reason: string;
  /** The id of the entry that stands in the lost one's place; null for the header. */
  readonly entryId: string | null;
}

/** A damaged log as far as it can be read, with a `lost` node in the place of each entry that cannot. */
export class SalvagedLog {
  readonly head: SessionHead;
  readonly entries: readonly Entry[];
  readonly damage: readonly Damage[];
  readonly #paths: ReadonlyMap<string, PathSummary>;
  readonly #settings: SettingsTable;
  readonly #positions: ReadonlyMap<string, number>;

  constructor(
    header: SessionHeader,
    { entries, paths, settings }: RelinkedLog,
    damage: readonly Damage[],
    updatedAt: string,
  ) {
    this.#settings = settings;
    this.entries = entries;
    this.damage = damage;
    this.#paths = paths;
    this.#positions = new Map(entries.map(({ id, seq }) => [id, seq]));
    let head = emptyHead(header);
    for (const entry of entries) {
      const target = entry.type === "leaf" ? entry.targetId : entry.id;
      head = stepHead(head, entry, paths.get(target ?? "") ?? emptyHead(header).path, updatedAt);
    }
    this.head = freezeDeep(head);
  }

  find(id: string): Entry | null {
    return this.entries[this.#positions.get(id) ?? -1] ?? null;
  }

  pathOf(id: string): PathSummary | null {
    return this.#paths.get(id) ?? null;
  }

  settingsAt(seq: number): SettingsNode {
    return this.#settings.at(seq);
  }

  *read({ after, before, limit, reverse }: ReadRange): Generator<Entry, undefined> {
    const range = this.entries.slice(Math.max(0, after + 1), Math.max(0, before));
    yield* (reverse ? range.reverse() : range).slice(0, limit);
  }
}

/** Reads all that can be read of a damaged file. The file is not touched. */
export function salvage(fd: number, path: string, stamp: FileStamp): SalvagedLog {
  const damage: Damage[] = [];
  const first = readFirstLine(fd);
  const whole = first.length > first.bytes.length;
  const items: RecoveredItem[] = [];
  let line = 1;
  for (const lines of readLines(fd, whole ? first.length : 0, stamp.size)) {
    for (const raw of lines) items.push(...recoverLine(raw, ++line));
  }
  const header = salvageHeader(first, path, items, damage);
  const relinked = relink(items, header, damage);
  return new SalvagedLog(header, relinked, damage, new Date(stamp.mtimeMs).toISOString());
}

/** What cannot be read of a file. */
export function readDamage(path: string): readonly Damage[] {
  return withFile(path, (fd) => salvage(fd, path, fstatSync(fd)).damage);
}

/** The header of a damaged file: its own, or one made of what the file's name and the entries tell. */
function salvageHeader(first: RawLine, path: string, items: readonly RecoveredItem[], damage: Damage[]): SessionHeader {
  try {
    return parseHeader(first, path);
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== "DAMAGED") throw error;
    const text = first.bytes.toString("utf8");
    const name = parseFileName(basename(path));
    const id = name?.id ?? /"id":"([^"\\]+)"/.exec(text)?.[1];
    const firstTime = items.find((item) => item.entry !== null)?.entry?.timestamp;
    const createdAt = name?.createdAt ?? firstTime;
    if (!isSessionId(id) || (firstTime === undefined && items.length > 0)) throw error;
    damage.push({
      line: 1,
      offset: 0,
      length: first.length,
      reason: (error as SessionError & { reason: string }).reason,
      entryId: null,
    });
    return createHeader({ id, ...(createdAt === undefined ? {} : { createdAt }) });
  }
}
