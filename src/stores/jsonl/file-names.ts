import { checkArgument, isObject } from "../../session/check-arguments.ts";
import { basename, dirname, join } from "node:path";
import type { SessionHeader } from "../../session/log/header.ts";
import { isSessionId } from "../../session/id.ts";

/** The suffix of the file of a session that a run is still writing. */
export const PARTIAL_SUFFIX = ".__partial__";

/** The folder beside session files for indexes and locks, which can be deleted without loss. */
export const INDEX_FOLDER = ".index";

/** The folder beside session files for data that is not in the logs: checkpoints, leases and marks. */
export const STATE_FOLDER = ".state";

/** The folder in `STATE_FOLDER` for the marks of sessions with open runs. */
export const OPEN_RUNS_FOLDER = "open-runs";

/** The folder beside session files for deleted sessions. */
export const TRASH_FOLDER = ".trash";

/** The folder beside session files for the data of images and files. */
export const BLOBS_FOLDER = "blobs";

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z`;
const NAME = new RegExp(`^(?:(?<deleted>${TIME})~)?(?<created>${TIME})_(?<id>[A-Za-z0-9._-]+)\\.jsonl$`);

/** The files that belong to one session. */
export interface LogPaths {
  readonly log: string;
  readonly index: string;
  readonly lock: string;
  readonly checkpoints: string;
  readonly lease: string;
  /** The mark of a session with open runs. */
  readonly openRuns: string;
}

/** The name of a new session's file. */
export function sessionFileName(header: Pick<SessionHeader, "id" | "createdAt">): string {
  const named = isObject(header) && typeof header.createdAt === "string" && isSessionId(header.id);
  checkArgument(named, header, "sessionFileName", "the header of a session");
  return `${toFileTime(header.createdAt)}_${header.id}.jsonl`;
}

/** The name of a deleted session's file, which contains the time of the deletion. */
export function trashFileName(name: string, deletedAt: string): string {
  return `${toFileTime(deletedAt)}~${name}`;
}

/** The name before the deletion and the time of the deletion; null if the name is not that of a deleted session's file. */
export function trashedName(name: string): { readonly name: string; readonly deletedAt: string } | null {
  const [, time, rest] = new RegExp(`^(${TIME})~(.+)$`).exec(name) ?? [];
  return time === undefined || rest === undefined ? null : { name: rest, deletedAt: fromFileTime(time) };
}

/** The id and time of creation in a session file's name; null if the name has another form. */
export function parseFileName(name: string): Pick<SessionHeader, "id" | "createdAt"> | null {
  const { id, created } = NAME.exec(finalName(name))?.groups ?? {};
  return created !== undefined && isSessionId(id) ? { id, createdAt: fromFileTime(created) } : null;
}

/** Whether a file with this name may be a session's. */
export function isLogName(name: string): boolean {
  return !name.startsWith(".") && finalName(name).endsWith(".jsonl");
}

/** The path that a session's file has after its run has ended normally. */
export function finalPathOf(path: string): string {
  checkArgument(typeof path === "string", path, "finalPathOf", "a path");
  return join(dirname(path), finalName(basename(path)));
}

/** The path that a session's file has while a run is writing it. */
export function partialPathOf(path: string): string {
  checkArgument(typeof path === "string", path, "partialPathOf", "a path");
  return `${finalPathOf(path)}${PARTIAL_SUFFIX}`;
}

/** The paths of a session's files. Only the log is renamed when a partial file gets its final name. */
export function pathsOf(log: string): LogPaths {
  const directory = dirname(log);
  const name = finalName(basename(log));
  return {
    log,
    index: join(directory, INDEX_FOLDER, `${name}.idx`),
    lock: join(directory, INDEX_FOLDER, `${name}.lock`),
    checkpoints: join(directory, STATE_FOLDER, `${name}.checkpoints`),
    lease: join(directory, STATE_FOLDER, `${name}.lease`),
    openRuns: join(directory, STATE_FOLDER, OPEN_RUNS_FOLDER, name),
  };
}

function finalName(name: string): string {
  return name.endsWith(PARTIAL_SUFFIX) ? name.slice(0, -PARTIAL_SUFFIX.length) : name;
}

function toFileTime(time: string): string {
  return time.replace(/[:.]/g, "-");
}

function fromFileTime(time: string): string {
  return time.replace(/T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z$/, "T$1:$2:$3.$4Z");
}
