import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { createHash } from "node:crypto";
import type { Entry } from "../../session/log/entry.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { canonicalAttachments } from "../blobs/attachments.ts";
import type { SessionStore } from "../../session/store.ts";

/** The digest of a session's header and of its first `version` entries. */
export interface LogDigest {
  readonly version: number;
  /** SHA-256, in hexadecimal. */
  readonly digest: string;
}

/** Options of `digestOf`. */
export interface DigestOptions {
  /** How many entries from the beginning are included (default: all). */
  readonly version?: number;
  readonly signal?: AbortSignal;
}

/**
 * The digest of a session's log, or null if there is no such session. It covers the header, and the id, parent, time,
 * position and content of every entry. The same log has the same digest in every store, and whatever version its header
 * has.
 */
export async function digestOf(
  store: SessionStore,
  sessionId: string,
  options: DigestOptions = {},
): Promise<LogDigest | null> {
  checkStoreArgument(store, "digestOf");
  checkOptionsOf(options, { version: true, signal: true } satisfies KeysOf<DigestOptions>, "digestOf");
  const head = await store.head(sessionId);
  if (head === null) return null;
  const hash = createHash("sha256").update(`${headerText(head.header)}\n`);
  let version = 0;
  for await (const entry of store.read(sessionId, { before: options.version ?? head.version })) {
    options.signal?.throwIfAborted();
    hash.update(`${canonicalEntry(entry)}\n`);
    version += 1;
  }
  return { version, digest: hash.digest("hex") };
}

/**
 * A header as text that is the same in every store. The version is always written as 1: stores raise it when they write, and
 * earlier digests must stay valid.
 */
export function headerText(header: SessionHeader): string {
  return canonicalJson({ ...header, version: 1 });
}

/** An entry as text that is the same in every store: an image or file counts as the SHA-256 of its bytes, wherever they are. */
export function canonicalEntry(entry: Entry): string {
  return canonicalJson(canonicalAttachments(entry));
}

/** A JSON value as text with sorted keys. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const object = value as Record<string, unknown>;
  const fields = Object.keys(object)
    .filter((key) => object[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key])}`);
  return `{${fields.join(",")}}`;
}

/** The position of the first entry in which two logs differ before `version`, or null if they are equal up to there. */
export async function firstDifference(
  one: { readonly store: SessionStore; readonly sessionId: string },
  other: { readonly store: SessionStore; readonly sessionId: string },
  version: number,
  seen: (entry: Entry) => void = () => {},
): Promise<number | null> {
  const others = other.store.read(other.sessionId, { before: version })[Symbol.asyncIterator]();
  let position = 0;
  try {
    for await (const entry of one.store.read(one.sessionId, { before: version })) {
      const { value, done } = await others.next();
      if (done === true || canonicalEntry(value) !== canonicalEntry(entry)) return position;
      seen(entry);
      position += 1;
    }
    return position === version ? null : position;
  } finally {
    await others.return?.();
  }
}
