import { type BlobKey, type BlobSource, type BlobStore, type ListedBlob, missingBlob } from "../../session/blob.ts";
import { hasHolderEnded, thisProcess } from "../../internal/process-identity.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { SessionError } from "../../session/errors.ts";
import { waitFor } from "../rows/coroutine.ts";
import type { SqlDatabase } from "./sql-database.ts";

export const CHUNK_BYTES: number = 1024 * 1024;
/**
 * The most bytes in one text of base64. V8 frees short texts soon, and long ones only when it next collects everything: a download of
 * 100 MB in texts of 1 MB took up to 124 MB of memory, in these up to 57 MB.
 */
export const PART_BYTES: number = 48 * 1024;
/** Chunks of this age without a blob are from a process that was killed, even if that cannot be found out. */
const LEFTOVER_MS_MIN = 60 * 60 * 1000;
const LIST_ROWS = 1000;

interface BlobRow {
  readonly scope: string;
  readonly hash: string;
  readonly size: number | string;
  readonly renewed: number | string;
  readonly chunks: string;
}

/** Blobs in two tables: a row for each blob, and its bytes in chunks. */
export class BlobRows implements BlobStore {
  readonly #database: SqlDatabase;
  readonly #clock: () => Date;
  readonly #blobs: string;
  readonly #chunks: string;

  constructor(database: SqlDatabase, clock: () => Date) {
    this.#database = database;
    this.#clock = clock;
    this.#blobs = `${database.dialect.prefix}blobs`;
    this.#chunks = `${database.dialect.prefix}blob_chunks`;
  }

  async put(key: BlobKey, source: BlobSource): Promise<void> {
    if ((await this.renew(key)) !== null) return;
    const id = uploadName();
    const { dialect } = this.#database;
    const add = `INSERT INTO ${this.#chunks} (chunks, number, written_ms, data) VALUES (?, ?, ?, ${dialect.bytesToData})`;
    const insert = `INSERT INTO ${this.#blobs} (scope, hash, size, renewed_ms, chunks) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (scope, hash) DO NOTHING`;
    // The last chunk and the row are one transaction, so that a small blob leaves nothing behind if the process dies.
    const held = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, source.size));
    let last: Buffer | null = null;
    let number = 0;
    for await (const chunk of chunksOf(source, CHUNK_BYTES)) {
      if (last !== null) await this.#database.change(add, [id, number++, this.#now(), dialect.bindBytes(last)]);
      last = held.subarray(0, chunk.copy(held));
    }
    const rest = last;
    const now = this.#now();
    const stored = await this.#database.transact(function* (transaction) {
      const values = [key.scope, key.hash, source.size, now, id];
      if ((yield* waitFor(transaction.change(insert, values))) === 0) return false;
      if (rest !== null) yield* waitFor(transaction.change(add, [id, number, now, dialect.bindBytes(rest)]));
      return true;
    });
    if (stored) return;
    await this.#database.change(`DELETE FROM ${this.#chunks} WHERE chunks = ?`, [id]);
    // Another process has just stored the same bytes.
    if ((await this.renew(key)) === null) await this.put(key, source);
  }

  async renew({ scope, hash }: BlobKey): Promise<number | null> {
    const now = this.#now();
    // Two renewals within one clock tick must differ.
    const sql = `UPDATE ${this.#blobs} SET renewed_ms = CASE WHEN renewed_ms < ? THEN ? ELSE renewed_ms + 1 END
      WHERE scope = ? AND hash = ?`;
    return (await this.#database.change(sql, [now, now, scope, hash])) === 0 ? null : this.size({ scope, hash });
  }

  async size(key: BlobKey): Promise<number | null> {
    const row = await this.#find(key);
    return row === null ? null : Number(row.size);
  }

  async *read(key: BlobKey, start: number, end: number): AsyncGenerator<Uint8Array> {
    const row = await this.#find(key);
    if (row === null) throw missingBlob(key);
    const { dialect } = this.#database;
    const part = dialect.dataToBytes("substr(data, CAST(? AS integer), CAST(? AS integer))");
    const sql = `SELECT ${part} AS data FROM ${this.#chunks} WHERE chunks = ? AND number = ?`;
    for (let at = start; at < end; ) {
      const number = Math.floor(at / CHUNK_BYTES);
      const offset = at % CHUNK_BYTES;
      const length = Math.min(dialect.partBytes, CHUNK_BYTES - offset, end - at);
      const [chunk] = await this.#database.rows<{ data: unknown }>(sql, [offset + 1, length, row.chunks, number]);
      const bytes = chunk === undefined ? null : dialect.readBytes(chunk.data);
      if (bytes === null || bytes.length === 0) throw missingBlob(key);
      yield bytes;
      at += bytes.length;
    }
  }

  async remove({ scope, hash }: BlobKey, renewedAt: number): Promise<boolean> {
    const row = await this.#find({ scope, hash });
    if (row === null) return false;
    const drop = `DELETE FROM ${this.#blobs} WHERE scope = ? AND hash = ? AND renewed_ms = ? AND chunks = ?`;
    const dropChunks = `DELETE FROM ${this.#chunks} WHERE chunks = ?`;
    return this.#database.transact(function* (transaction) {
      if ((yield* waitFor(transaction.change(drop, [scope, hash, renewedAt, row.chunks]))) === 0) return false;
      yield* waitFor(transaction.change(dropChunks, [row.chunks]));
      return true;
    });
  }

  /** Also removes the chunks of processes that were killed. */
  async *list(scope?: string): AsyncGenerator<ListedBlob> {
    await this.#removeLeftovers();
    const where =
      scope === undefined ? "(scope > ? OR (scope = ? AND hash > ?))" : "scope = ? AND scope = ? AND hash > ?";
    const sql = `SELECT scope, hash, size, renewed_ms AS renewed, chunks FROM ${this.#blobs} WHERE ${where}
      ORDER BY scope, hash LIMIT ${LIST_ROWS}`;
    for (let after = { scope: scope ?? "", hash: "" }; ; ) {
      const rows = await this.#database.rows<BlobRow>(sql, [after.scope, after.scope, after.hash]);
      for (const row of rows) {
        const renewedAt = Number(row.renewed);
        const ageMs = this.#now() - renewedAt;
        yield { scope: row.scope, hash: row.hash, size: Number(row.size), renewedAt, ageMs };
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < LIST_ROWS) return;
      after = last;
    }
  }

  async #removeLeftovers(): Promise<void> {
    const sql = `SELECT chunks, MAX(written_ms) AS written FROM ${this.#chunks}
      WHERE chunks NOT IN (SELECT chunks FROM ${this.#blobs}) GROUP BY chunks`;
    const drop = `DELETE FROM ${this.#chunks} WHERE chunks = ? AND chunks NOT IN (SELECT chunks FROM ${this.#blobs})`;
    for (const { chunks, written } of await this.#database.rows<{ chunks: string; written: number | string }>(sql, []))
      if (isUploadOver(chunks) || Number(written) < this.#now() - LEFTOVER_MS_MIN)
        await this.#database.change(drop, [chunks]);
  }

  async #find({ scope, hash }: BlobKey): Promise<BlobRow | null> {
    const sql = `SELECT scope, hash, size, renewed_ms AS renewed, chunks FROM ${this.#blobs} WHERE scope = ? AND hash = ?`;
    const [row = null] = await this.#database.rows<BlobRow>(sql, [scope, hash]);
    return row;
  }

  #now(): number {
    return this.#clock().getTime();
  }
}

/** The name of the chunks of an upload, which tells which process makes it. */
export function uploadName(): string {
  return `${uuidv7()}.${Buffer.from(JSON.stringify(thisProcess)).toString("base64url")}`;
}

/** Whether the process that made an upload has ended. */
export function isUploadOver(name: string): boolean {
  return hasHolderEnded(Buffer.from(name.split(".")[1] ?? "", "base64url").toString());
}

/** The bytes of a source in chunks of one size, the last of which may be shorter. Each is valid only until the next one. */
export async function* chunksOf(source: BlobSource, size: number): AsyncGenerator<Buffer> {
  const chunk = Buffer.allocUnsafe(Math.min(size, source.size));
  let [filled, total] = [0, 0];
  for await (const each of source.read()) {
    total += each.byteLength;
    if (total > source.size) break;
    for (let at = 0; at < each.byteLength; ) {
      const part = each.subarray(at, at + chunk.length - filled);
      chunk.set(part, filled);
      [at, filled] = [at + part.byteLength, filled + part.byteLength];
      if (filled < chunk.length) continue;
      yield chunk;
      filled = 0;
    }
  }
  if (total !== source.size)
    throw new SessionError("STORE_FAILED", `A blob of ${source.size} bytes came with another number of bytes.`);
  if (filled > 0) yield chunk.subarray(0, filled);
}
