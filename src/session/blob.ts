import { SessionError, show } from "./errors.ts";
import type { Attachment, BlobAttachment, InlineAttachment } from "./message.ts";

/** The range of bytes to read from a blob: from `start` (default 0) to `end` (exclusive; default: the end of the blob). */
export interface BlobRange {
  readonly start?: number;
  readonly end?: number;
}

/** A blob of a session. Its bytes are read only when `bytes` or `stream` is called. */
export interface StoredBlob {
  /** `sha256:` and the hash of the bytes in hexadecimal. */
  readonly blob: string;
  /** How many bytes there are. */
  readonly size: number;
  bytes(range?: BlobRange): Promise<Uint8Array>;
  stream(range?: BlobRange): AsyncIterable<Uint8Array>;
}

/** Options of `store.blob`. */
export interface ReadBlobOptions {
  /** The root session of the forks (`rootIdOf` of the header), to read a blob of a session that may be deleted. */
  readonly root?: string;
}

/** Finds a blob by its name, `sha256:…`; null if it is not stored. */
export type FindBlob = (blob: string) => Promise<StoredBlob | null>;

/** The result of `store.putBlob`. A message refers to the blob with both fields. */
export interface BlobRef {
  readonly blob: string;
  readonly bytes: number;
}

/** Bytes to store: as one array, or as a stream. */
export type BlobInput = Uint8Array | AsyncIterable<Uint8Array>;

/** Which blob of a `BlobStore`: the root session of a chain of forks, and the SHA-256 of the bytes in hexadecimal. */
export interface BlobKey {
  readonly scope: string;
  readonly hash: string;
}

/** Bytes whose number and hash are known, which can be read several times. */
export interface BlobSource {
  readonly size: number;
  /** All bytes as one array, if they are in memory. */
  readonly bytes?: Uint8Array;
  /** Each piece is valid only until the next one is asked for. */
  read(): AsyncIterable<Uint8Array>;
}

/** The status of a blob in a `BlobStore`. */
export interface ListedBlob extends BlobKey {
  readonly size: number;
  /** When it was last put or renewed, as `remove` compares it: milliseconds, or any number that a later renewal changes. */
  readonly renewedAt: number;
  /** The time since then, by the clock of the blob store. */
  readonly ageMs: number;
}

/**
 * Keeps blobs beside the logs: bytes that never change, each under a scope and its hash.
 *
 * Every blob store keeps these promises; `skein/testing` checks each of them:
 * - `put` stores all bytes or none, even if the process dies during the call. Once it resolves, every reader sees them.
 * - `put` renews a blob that is already stored, without writing it again.
 * - `remove` removes a blob only if no caller has put or renewed it since its `renewedAt` was read. If a renewal and a removal are
 *   concurrent, either the removal has no effect, or `renew` returns null (and `put` writes the blob again).
 * - A blob is visible only in its own scope. Any session id is a valid scope.
 */
export interface BlobStore {
  put(key: BlobKey, source: BlobSource): Promise<void>;
  /** Marks a blob as in use now, and returns its size in bytes; null if it is not stored. */
  renew(key: BlobKey): Promise<number | null>;
  /** The size of a blob in bytes; null if it is not stored. */
  size(key: BlobKey): Promise<number | null>;
  /** The bytes from `start` up to `end`. @throws {SessionError} `BLOB_NOT_FOUND` if there is no such blob. */
  read(key: BlobKey, start: number, end: number): AsyncIterable<Uint8Array>;
  /** Removes a blob and returns true; returns false if it was put or renewed since `renewedAt`, or is not stored. */
  remove(key: BlobKey, renewedAt: number): Promise<boolean>;
  /** The blobs of one scope, or of all, in any order. */
  list(scope?: string): AsyncIterable<ListedBlob>;
  close?(): Promise<void>;
}

/** Which blobs of a store may be removed. */
export interface SweepBlobsOptions {
  /** Keep blobs that were put or renewed within this time (default: 24 hours). */
  readonly graceMs?: number;
  /** Only the blobs of the forks of this root session, or of these. */
  readonly scope?: string | readonly string[];
  readonly signal?: AbortSignal;
}

/** The result of a sweep. */
export interface SweptBlobs {
  /** How many blobs there were. */
  readonly blobs: number;
  readonly removed: number;
  /** The total size of the removed blobs. */
  readonly bytes: number;
  /** Set if a session cannot be read, or sessions are purged too fast to be read; in that case no blob is removed. */
  readonly unreadable?: true;
}

/** How a store keeps blobs. */
export interface BlobOptions {
  /** The blob store to use instead of the store itself. */
  readonly blobs?: BlobStore;
  /** Data of more bytes than this is stored as a blob (default 4,096). */
  readonly inlineMax?: number;
  /** The most bytes of one blob (default 100 MiB). */
  readonly blobBytesMax?: number;
  /** The most bytes of all blobs of a user's sessions (default 10 GiB). */
  readonly userBlobBytesMax?: number;
}

/** The names of these options. */
export const BLOB_OPTIONS: { readonly [Name in keyof BlobOptions]-?: true } = {
  blobs: true,
  inlineMax: true,
  blobBytesMax: true,
  userBlobBytesMax: true,
};

const NAME = /^sha256:([0-9a-f]{64})$/;

/** The name of the blob with this hash. */
export function blobName(hash: string): string {
  return `sha256:${hash}`;
}

/** The hash in the name of a blob; null for any other text. */
export function blobHash(blob: unknown): string | null {
  return typeof blob === "string" ? (NAME.exec(blob)?.[1] ?? null) : null;
}

/** The error for a reference to a blob that the session cannot see. */
export function blobNotFound(sessionId: string, blob: unknown): SessionError {
  return new SessionError(
    "BLOB_NOT_FOUND",
    `Session ${sessionId} has no blob ${show(blob)}; store it with putBlob, or pass the data itself.`,
  );
}

/** The error for reading a blob that is not stored. */
export function missingBlob({ scope, hash }: BlobKey): SessionError {
  return new SessionError("BLOB_NOT_FOUND", `There is no blob ${blobName(hash)} of session ${scope} any more.`);
}

/** Whether a part of a message is an image or a file whose bytes are a blob. */
export function isBlobAttachment(part: { readonly type: string }): part is BlobAttachment {
  return (part.type === "image" || part.type === "file") && "blob" in part;
}

/**
 * An image or file with its data. Models get all messages so.
 *
 * @throws {SessionError} `BLOB_NOT_FOUND` for one whose bytes have not been read.
 */
export function inlineAttachment(part: Attachment): InlineAttachment {
  if (!("blob" in part)) return part;
  throw new SessionError("BLOB_NOT_FOUND", `The bytes of the attachment ${show(part.name ?? part.blob)} are missing.`);
}
