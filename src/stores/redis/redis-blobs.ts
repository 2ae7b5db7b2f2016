import { type BlobKey, type BlobSource, type BlobStore, type ListedBlob, missingBlob } from "../../session/blob.ts";
import { CHUNK_BYTES, chunksOf, isUploadOver, PART_BYTES, uploadName } from "../sql/blob-rows.ts";
import { defineScript, type RedisHandle } from "./redis-handle.ts";

/** How long the chunks of a blob are kept that is not whole yet: its process may have been killed. */
const UPLOAD_SECONDS = 60 * 60;
/** How many chunks are sent before the answer to the first of them. */
const AT_ONCE = 16;

/** Parses `size:renewedAt:chunks`, sets a later `renewedAt`, and returns the size. */
const RENEWED = `
local function renew(text)
  local size, at, chunks = string.match(text, '^(%d+):(%d+):(.*)$')
  local now = tonumber(ARGV[2])
  if tonumber(at) >= now then now = tonumber(at) + 1 end
  redis.call('HSET', KEYS[1], ARGV[1], size .. ':' .. string.format('%.0f', now) .. ':' .. chunks)
  return {size}
end
local found = redis.call('HGET', KEYS[1], ARGV[1])`;

/** KEYS: the hash of the scope. ARGV: the blob's hash, the time. */
const RENEW = defineScript(`${RENEWED}
if not found then return {} end
return renew(found)`);

/** KEYS: the hash of the scope, the chunks. ARGV: the blob's hash, the time, its size, the name of the chunks. */
const ADD = defineScript(`${RENEWED}
if found then
  if string.match(found, '^%d+:%d+:(.*)$') ~= ARGV[4] then redis.call('DEL', KEYS[2]) end
  return renew(found)
end
redis.call('PERSIST', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. ':' .. ARGV[2] .. ':' .. ARGV[4])
return {ARGV[3]}`);

/** KEYS: the hash of the scope, the chunks. ARGV: the blob's hash, what its field must be. */
const REMOVE = defineScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return {} end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return {'removed'}`);

/** Blobs in Redis: a hash for each scope, a hash with the chunks of each blob as base64, and a set of the scopes. */
export class RedisBlobs implements BlobStore {
  readonly #handle: RedisHandle;
  readonly #clock: () => Date;

  constructor(handle: RedisHandle, clock: () => Date) {
    this.#handle = handle;
    this.#clock = clock;
  }

  async put(key: BlobKey, source: BlobSource): Promise<void> {
    if ((await this.renew(key)) !== null) return;
    const { names } = this.#handle;
    const { scope, hash } = key;
    const id = `${uploadName()}.${PART_BYTES}`;
    const chunks = names.blobChunks(scope, id);
    const upload = JSON.stringify([scope, id]);
    await this.#handle.command("SADD", names.index("blobs"), scope);
    await this.#handle.command("SADD", names.index("uploads"), upload);
    let number = 0;
    let sending: Promise<unknown>[] = [];
    try {
      for await (const chunk of chunksOf(source, PART_BYTES)) {
        sending.push(this.#handle.command("HSET", chunks, String(number++), chunk.toString("base64")));
        if (number > 1 && sending.length < AT_ONCE) continue;
        await Promise.all(sending);
        sending = [];
        if (number === 1) await this.#handle.command("EXPIRE", chunks, String(UPLOAD_SECONDS));
      }
      await Promise.all(sending);
    } finally {
      await Promise.allSettled(sending);
    }
    await this.#handle.run(ADD, [names.blobs(scope), chunks], [hash, String(this.#now()), String(source.size), id]);
    await this.#handle.command("SREM", names.index("uploads"), upload);
  }

  async renew({ scope, hash }: BlobKey): Promise<number | null> {
    const [size] = await this.#handle.run(RENEW, [this.#handle.names.blobs(scope)], [hash, String(this.#now())]);
    return size === undefined ? null : Number(size);
  }

  async size(key: BlobKey): Promise<number | null> {
    return (await this.#find(key))?.size ?? null;
  }

  async *read(key: BlobKey, start: number, end: number): AsyncGenerator<Uint8Array> {
    const found = await this.#find(key);
    if (found === null) throw missingBlob(key);
    const name = this.#handle.names.blobChunks(key.scope, found.chunks);
    const chunkBytes = chunkBytesOf(found.chunks);
    for (let at = start; at < end; ) {
      const number = Math.floor(at / chunkBytes);
      const text = await this.#handle.command<string | null>("HGET", name, String(number));
      if (text === null) throw missingBlob(key);
      const first = number * chunkBytes;
      const bytes = Buffer.from(text, "base64").subarray(at - first, end - first);
      yield bytes;
      at += bytes.length;
    }
  }

  async remove({ scope, hash }: BlobKey, renewedAt: number): Promise<boolean> {
    const found = await this.#find({ scope, hash });
    if (found === null || found.renewedAt !== renewedAt) return false;
    const { names } = this.#handle;
    const keys = [names.blobs(scope), names.blobChunks(scope, found.chunks)];
    return (await this.#handle.run(REMOVE, keys, [hash, found.text])).length > 0;
  }

  /** Also removes the chunks of processes that were killed. */
  async *list(scope?: string): AsyncGenerator<ListedBlob> {
    const { names } = this.#handle;
    await this.#removeLeftovers();
    const scopes =
      scope === undefined ? await this.#handle.command<string[]>("SMEMBERS", names.index("blobs")) : [scope];
    for (const id of scopes) {
      const hashes = await this.#handle.command<string[]>("HKEYS", names.blobs(id));
      for (const hash of hashes) {
        const found = await this.#find({ scope: id, hash });
        if (found === null) continue;
        const { size, renewedAt } = found;
        yield { scope: id, hash, size, renewedAt, ageMs: this.#now() - renewedAt };
      }
    }
  }

  async #removeLeftovers(): Promise<void> {
    const { names } = this.#handle;
    for (const upload of await this.#handle.command<string[]>("SMEMBERS", names.index("uploads"))) {
      const [scope, id] = JSON.parse(upload) as readonly [string, string];
      // The chunks of other machines expire.
      if (!isUploadOver(id)) continue;
      const kept = await this.#handle.command<string[]>("HVALS", names.blobs(scope));
      if (!kept.some((text) => text.endsWith(`:${id}`))) await this.#handle.command("DEL", names.blobChunks(scope, id));
      await this.#handle.command("SREM", names.index("uploads"), upload);
    }
  }

  async #find({ scope, hash }: BlobKey): Promise<StoredField | null> {
    const text = await this.#handle.command<string | null>("HGET", this.#handle.names.blobs(scope), hash);
    if (text === null) return null;
    const [size = "", renewedAt = "", chunks = ""] = text.split(":");
    return { text, size: Number(size), renewedAt: Number(renewedAt), chunks };
  }

  #now(): number {
    return this.#clock().getTime();
  }
}

interface StoredField {
  readonly text: string;
  readonly size: number;
  readonly renewedAt: number;
  readonly chunks: string;
}

/** The size of the chunks of a blob, with which their name ends. Names without it are of older blobs, in chunks of 1 MiB. */
function chunkBytesOf(chunks: string): number {
  const [, , bytes = String(CHUNK_BYTES)] = chunks.split(".");
  return Number(bytes);
}
