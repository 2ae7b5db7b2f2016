import { checkArgument, isObject } from "../../session/check-arguments.ts";
import { basename, dirname, join } from "node:path";
import type { SessionHeader } from "../../session/log/header.ts";
import { isSessionId } from "../../session/id.ts";

/** How the file of a session that is still being written by one run ends. */
export const PARTIAL_SUFFIX = ".__partial__";

/** The folder, beside session files, of what can be made again from them: indexes and locks. */
export const INDEX_FOLDER = ".index";

/** The folder, beside session files, of what is kept about sessions and not in their logs: checkpoints and leases. */
export const STATE_FOLDER = ".state";

/** The folder, beside session files, of deleted ones. */
export const TRASH_FOLDER = ".trash";

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z`;
const NAME = new RegExp(`^(?:(?<deleted>${TIME})~)?(?<created>${TIME})_(?<id>[A-Za-z0-9._-]+)\\.jsonl$`);

/** The files that belong to one session. */
export interface LogPaths {
  readonly log: string;
  readonly index: string;
  readonly lock: string;
  readonly checkpoints: string;
  readonly lease: string;
}

/** The name of a new session's file. */
export function sessionFileName(header: Pick<SessionHeader, "id" | "createdAt">): string {
  const named = isObject(header) && typeof header.createdAt === "string" && isSessionId(header.id);
  checkArgument(named, header, "sessionFileName", "the header of a session");
  return `${toFileTime(header.createdAt)}_${header.id}.jsonl`;
}

/** The name of a deleted session's file, which keeps the time of the deletion. */
export function trashFileName(name: string, deletedAt: string): string {
  return `${toFileTime(deletedAt)}~${name}`;
}

/** The name before the deletion, and the time of it; null for a name that is not one of the trash. */
export function trashedName(name: string): { readonly name: string; readonly deletedAt: string } | null {
  const [, time, rest] = new RegExp(`^(${TIME})~(.+)$`).exec(name) ?? [];
  return time === undefined || rest === undefined ? null : { name: rest, deletedAt: fromFileTime(time) };
}

/** What a session file's name tells, or null for a name of another kind. */
export function parseFileName(name: string): Pick<SessionHeader, "id" | "createdAt"> | null {
  const { id, created } = NAME.exec(finalName(name))?.groups ?? {};
  return created !== undefined && isSessionId(id) ? { id, createdAt: fromFileTime(created) } : null;
}

/** Whether a file of that name may be a session. */
export function isLogName(name: string): boolean {
  return !name.startsWith(".") && finalName(name).endsWith(".jsonl");
}

/** The name that a session's file has once its run has ended in good order. */
export function finalPathOf(path: string): string {
  checkArgument(typeof path === "string", path, "finalPathOf", "a path");
  return join(dirname(path), finalName(basename(path)));
}

/** The name that a session's file has while one run writes it. */
export function partialPathOf(path: string): string {
  checkArgument(typeof path === "string", path, "partialPathOf", "a path");
  return `${finalPathOf(path)}${PARTIAL_SUFFIX}`;
}

/** The files of the session in a log file. They keep their names when a partial file gets its final one. */
export function pathsOf(log: string): LogPaths {
  const directory = dirname(log);
  const name = finalName(basename(log));
  return {
    log,
    index: join(directory, INDEX_FOLDER, `${name}.idx`),
    lock: join(directory, INDEX_FOLDER, `${name}.lock`),
    checkpoints: join(directory, STATE_FOLDER, `${name}.checkpoints`),
    lease: join(directory, STATE_FOLDER, `${name}.lease`),
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
