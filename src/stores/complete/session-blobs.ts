import { checkArgument, isObject } from "../../session/check-arguments.ts";
import {
  type BlobInput,
  blobHash,
  type BlobKey,
  blobName,
  blobNotFound,
  type BlobOptions,
  type BlobRange,
  type BlobRef,
  type BlobSource,
  type BlobStore,
  type FindBlob,
  type StoredBlob,
} from "../../session/blob.ts";
import type { InlineAttachment } from "../../session/message.ts";
import { SessionError, show } from "../../session/errors.ts";
import { rootIdOf, type SessionHeader } from "../../session/log/header.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import { type ExtractedBlobs, hashOf } from "../blobs/attachments.ts";
import { bytesSource, spoolBytes } from "./spooled-bytes.ts";
import { checkCount, invalidOption } from "./valid-arguments.ts";

const INLINE_BYTES_MAX = 4096;
const BLOB_BYTES_MAX = 100 * 1024 * 1024;
const USER_BYTES_MAX = 10 * 1024 * 1024 * 1024;
/** After this time, what the blobs of a user add up to is read again: other processes store blobs, too. */
const TOTAL_MS_MAX = 10 * 60 * 1000;
const LIST_PAGE = 1000;
/** How many blobs of one append are written at the same time. */
const WRITES_AT_ONCE = 4;

/** The blobs of a store's sessions. */
export class SessionBlobs {
  /** Data of more bytes becomes a blob. */
  readonly inlineMax: number;
  readonly blobs: BlobStore | null;
  readonly #driver: StoreDriver;
  readonly #bytesMax: number;
  readonly #userBytesMax: number;
  /** By user: what their blobs add up to, and when that was read. */
  readonly #totals = new Map<string, { bytes: number; readonly readAt: number }>();

  constructor(driver: StoreDriver, options: BlobOptions) {
    checkBlobOptions(options);
    this.#driver = driver;
    this.blobs = options.blobs ?? driver.blobs ?? null;
    this.inlineMax = this.blobs === null ? Number.POSITIVE_INFINITY : (options.inlineMax ?? INLINE_BYTES_MAX);
    this.#bytesMax = options.blobBytesMax ?? BLOB_BYTES_MAX;
    this.#userBytesMax = options.userBlobBytesMax ?? USER_BYTES_MAX;
  }

  /**
   * Stores the contents of drafts, before their entries. Checks that the session has all blobs that they refer to; `find` gives
   * those that it has not.
   *
   * @throws {SessionError} `TOO_LARGE`, `BLOBS_QUOTA_EXCEEDED`, with nothing stored, or `BLOB_NOT_FOUND`.
   */
  async store(header: SessionHeader, { contents, references }: ExtractedBlobs, find?: FindBlob): Promise<void> {
    const blobs = this.#blobStore(header.id, references);
    const scope = rootIdOf(header);
    for (const bytes of contents.values())
      if (bytes.byteLength > this.#bytesMax) throw this.#tooLarge(bytes.byteLength);
    const missing: string[] = [];
    for (const [hash, bytes] of references) {
      const size = contents.has(hash)
        ? (contents.get(hash) as Uint8Array).byteLength
        : await blobs.renew({ scope, hash });
      if (size === null) missing.push(hash);
      else if (size !== bytes) throw wrongSize(header.id, hash, bytes, size);
    }
    const brought: StoredBlob[] = [];
    for (const hash of missing) {
      const found = (await find?.(blobName(hash))) ?? null;
      if (found === null) throw blobNotFound(header.id, blobName(hash));
      if (found.size !== references.get(hash)) throw wrongSize(header.id, hash, references.get(hash), found.size);
      brought.push(found);
    }
    const fresh: [string, Uint8Array][] = [];
    for (const [hash, bytes] of contents) if ((await blobs.renew({ scope, hash })) === null) fresh.push([hash, bytes]);
    const added = sum(fresh.map(([, bytes]) => bytes.byteLength)) + sum(brought.map(({ size }) => size));
    await this.#checkTotal(header, added);
    for (let first = 0; first < fresh.length; first += WRITES_AT_ONCE) {
      const part = fresh.slice(first, first + WRITES_AT_ONCE);
      await Promise.all(part.map(([hash, bytes]) => blobs.put({ scope, hash }, bytesSource(bytes))));
    }
    for (const { blob, size, stream } of brought)
      await this.#bring({ scope, hash: blobHash(blob) as string }, { size, read: () => stream() });
  }

  /**
   * Renews all blobs of drafts, and stores their contents again if an erasure has removed them since.
   *
   * @throws {SessionError} `BLOB_NOT_FOUND`.
   */
  async renew(
    header: SessionHeader,
    contents: ExtractedBlobs["contents"],
    references: ExtractedBlobs["references"] = new Map(),
  ): Promise<void> {
    const { blobs } = this;
    if (blobs === null) return;
    const scope = rootIdOf(header);
    for (const [hash, bytes] of contents) await blobs.put({ scope, hash }, bytesSource(bytes));
    for (const hash of references.keys())
      if (!contents.has(hash) && (await blobs.renew({ scope, hash })) === null)
        throw blobNotFound(header.id, blobName(hash));
  }

  async put(header: SessionHeader, input: BlobInput): Promise<BlobRef> {
    const blobs = this.blobs;
    if (blobs === null)
      throw new SessionError("NOT_SUPPORTED", "This store cannot keep blobs: pass the data in a message.");
    const scope = rootIdOf(header);
    if (input instanceof Uint8Array) {
      const bytes = Buffer.from(input);
      if (bytes.length > this.#bytesMax) throw this.#tooLarge(bytes.length);
      return this.#putSource(header, { scope, hash: hashOf(bytes) }, bytesSource(bytes));
    }
    checkArgument(isStream(input), input, "putBlob", "a Uint8Array or an async iterable of them");
    await using spooled = await spoolBytes(input, this.#bytesMax, (bytes) => this.#tooLarge(bytes));
    return await this.#putSource(header, { scope, hash: spooled.hash }, spooled);
  }

  async find(scope: string, blob: string): Promise<StoredBlob | null> {
    const hash = blobHash(blob);
    if (hash === null || this.blobs === null) return null;
    const key = { scope, hash };
    const size = await this.blobs.size(key);
    return size === null ? null : storedBlob(this.blobs, key, size);
  }

  /** Stores a blob from elsewhere, whose bytes nobody has checked yet. */
  async #bring(key: BlobKey, source: BlobSource): Promise<void> {
    await using spooled = await spoolBytes(source.read(), this.#bytesMax, (bytes) => this.#tooLarge(bytes));
    if (spooled.hash !== key.hash || spooled.size !== source.size)
      throw new SessionError("INVALID_ENTRY", `The bytes that were found for blob ${blobName(key.hash)} are others.`);
    await (this.blobs as BlobStore).put(key, spooled);
  }

  async #putSource(header: SessionHeader, key: BlobKey, source: Parameters<BlobStore["put"]>[1]): Promise<BlobRef> {
    const blobs = this.blobs as BlobStore;
    if ((await blobs.renew(key)) === null) {
      await this.#checkTotal(header, source.size);
      await blobs.put(key, source);
    }
    return { blob: blobName(key.hash), bytes: source.size };
  }

  #blobStore(sessionId: string, references: ExtractedBlobs["references"]): BlobStore {
    if (this.blobs !== null) return this.blobs;
    const [hash = ""] = references.keys();
    throw blobNotFound(sessionId, blobName(hash));
  }

  /** @throws {SessionError} `BLOBS_QUOTA_EXCEEDED` if the user's blobs and so many bytes more exceed the limit. */
  async #checkTotal({ userId }: SessionHeader, added: number): Promise<void> {
    if (added === 0 || userId === null || this.#userBytesMax === Number.POSITIVE_INFINITY) return;
    let total = this.#totals.get(userId);
    const isOld = total === undefined || Date.now() - total.readAt > TOTAL_MS_MAX;
    if (total === undefined || isOld || total.bytes + added > this.#userBytesMax) {
      total = { bytes: await this.#readTotal(userId), readAt: Date.now() };
      this.#totals.set(userId, total);
    }
    if (total.bytes + added > this.#userBytesMax) {
      throw new SessionError(
        "BLOBS_QUOTA_EXCEEDED",
        `The images and files of user ${show(userId)} take ${total.bytes} bytes, and ${added} more would exceed ${this.#userBytesMax}; erase or purge sessions.`,
      );
    }
    total.bytes += added;
  }

  /** The total bytes of the blobs of all sessions of a user, deleted ones included. */
  async #readTotal(userId: string): Promise<number> {
    const scopes = new Set<string>();
    for (const deleted of [false, true]) {
      for (let after = null; ; ) {
        const heads = await this.#driver.listing.list({ userId, ...(deleted && { deleted }) }, LIST_PAGE, after);
        for (const { header } of heads) scopes.add(rootIdOf(header));
        const last = heads.at(-1);
        if (last === undefined || heads.length < LIST_PAGE) break;
        after = { modifiedAt: last.modifiedAt, id: last.header.id };
      }
    }
    let bytes = 0;
    for (const scope of scopes) for await (const { size } of (this.blobs as BlobStore).list(scope)) bytes += size;
    return bytes;
  }

  #tooLarge(bytes: number): SessionError {
    return new SessionError(
      "TOO_LARGE",
      `An image or a file has ${bytes} bytes or more; this store takes at most ${this.#bytesMax}.`,
    );
  }
}

function storedBlob(blobs: BlobStore, key: BlobKey, size: number): StoredBlob {
  const stream = (range: BlobRange = {}): AsyncIterable<Uint8Array> => {
    const { start = 0, end = size } = range;
    checkCount(start, "start", 0, size);
    checkCount(end, "end", start);
    return blobs.read(key, start, Math.min(end, size));
  };
  return {
    blob: blobName(key.hash),
    size,
    stream,
    bytes: async (range) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of stream(range)) chunks.push(chunk);
      return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
    },
  };
}

/** Whether a part of a message has its data. */
export function isInline(part: unknown): part is InlineAttachment {
  return isObject(part) && typeof (part as Partial<InlineAttachment>).data === "string";
}

/** The bytes of an image or file that is in its entry. */
export function inlineBlob({ data }: InlineAttachment): StoredBlob {
  const bytes = Buffer.from(data, "base64");
  const cut = ({ start = 0, end = bytes.length }: BlobRange = {}): Buffer => bytes.subarray(start, end);
  return {
    blob: blobName(hashOf(bytes)),
    size: bytes.length,
    bytes: async (range) => cut(range),
    stream: (range) => bytesSource(cut(range)).read(),
  };
}

function wrongSize(sessionId: string, hash: string, said: unknown, size: number): SessionError {
  return new SessionError(
    "INVALID_ENTRY",
    `Blob ${blobName(hash)} of session ${sessionId} has ${size} bytes, not ${show(said)}.`,
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function isStream(value: unknown): value is AsyncIterable<Uint8Array> {
  return isObject(value) && typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === "function";
}

/** @throws {SessionError} `INVALID_OPTION` unless the options that concern blobs are valid. */
export function checkBlobOptions({ blobs, inlineMax, blobBytesMax, userBlobBytesMax }: BlobOptions): void {
  if (blobs !== undefined && !(isObject(blobs) && typeof (blobs as Partial<BlobStore>).put === "function"))
    throw invalidOption("blobs", blobs, "a blob store, such as fileBlobs makes");
  if (inlineMax !== undefined) checkCount(inlineMax, "inlineMax");
  for (const [name, value] of Object.entries({ blobBytesMax, userBlobBytesMax }))
    if (value !== undefined && value !== Number.POSITIVE_INFINITY) checkCount(value, name);
}
