import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { BlobKey, BlobSource, BlobStore } from "../session/blob.ts";
import { SessionError } from "../session/errors.ts";
import { sampleBytes } from "./store/blob-cases.ts";
import { collect } from "./store/store-checks.ts";

/** One conformance case of `BlobStore`: a promise of the contract, and a test of it. Each needs its own empty store. */
export interface BlobStoreCase {
  /** A unique sentence of behaviour. */
  readonly name: string;
  /** Rejects if the store does not keep the promise, mostly with an `AssertionError`. */
  run(blobs: BlobStore): Promise<void>;
}

function keyOf(bytes: Uint8Array, scope = "a"): BlobKey {
  return { scope, hash: createHash("sha256").update(bytes).digest("hex") };
}

/** A source whose pieces are valid only until the next one, as those of an upload. */
function sourceOf(bytes: Uint8Array, pieceBytes = 50_000): BlobSource {
  return {
    size: bytes.byteLength,
    async *read() {
      const piece = new Uint8Array(Math.min(pieceBytes, bytes.byteLength));
      for (let at = 0; at < bytes.byteLength; at += pieceBytes) {
        const part = bytes.subarray(at, at + pieceBytes);
        piece.set(part);
        yield piece.subarray(0, part.byteLength);
      }
      piece.fill(0);
    },
  };
}

async function readAll(blobs: BlobStore, key: BlobKey, start: number, end: number): Promise<Buffer> {
  return Buffer.concat(await collect(blobs.read(key, start, end)));
}

async function findOne(blobs: BlobStore, { scope, hash }: BlobKey) {
  const listed = (await collect(blobs.list(scope))).find((each) => each.hash === hash);
  assert.ok(listed !== undefined, "the blob is not listed");
  return listed;
}

/** The conformance cases of `BlobStore`, for any test runner. */
export const blobStoreCases: readonly BlobStoreCase[] = [
  {
    name: "returns the bytes that were put, and every range of them",
    async run(blobs) {
      for (const length of [0, 1, 100_000, 2_500_000]) {
        const bytes = sampleBytes(length + 1, length);
        const key = keyOf(bytes);
        assert.equal(await blobs.size(key), null);
        assert.equal(await blobs.renew(key), null);
        await blobs.put(key, sourceOf(bytes));
        assert.equal(await blobs.size(key), length);
        assert.ok((await readAll(blobs, key, 0, length)).equals(bytes), `all ${length} bytes`);
        const [start, end] = [Math.floor(length / 3), Math.ceil((length * 2) / 3)];
        assert.ok((await readAll(blobs, key, start, end)).equals(bytes.subarray(start, end)), "a range");
      }
    },
  },
  {
    name: "keeps scopes apart, also those whose ids differ in the case of letters only",
    async run(blobs) {
      const bytes = sampleBytes(1);
      await blobs.put(keyOf(bytes, "A.b"), sourceOf(bytes));
      assert.equal(await blobs.size(keyOf(bytes, "a.b")), null);
      assert.deepEqual(await collect(blobs.list("a.b")), []);
      await blobs.put(keyOf(bytes, "a.b"), sourceOf(bytes));
      const scopes = (await collect(blobs.list())).map(({ scope }) => scope);
      assert.deepEqual(scopes.sort(), ["A.b", "a.b"]);
    },
  },
  {
    name: "stores nothing if the source fails, and rejects a read of what is not there",
    async run(blobs) {
      const bytes = sampleBytes(2);
      const failing: BlobSource = {
        size: bytes.length,
        async *read() {
          yield bytes.subarray(0, 100);
          throw new RangeError("cut");
        },
      };
      await assert.rejects(blobs.put(keyOf(bytes), failing), RangeError);
      assert.equal(await blobs.size(keyOf(bytes)), null);
      assert.deepEqual(await collect(blobs.list()), []);
      await assert.rejects(
        readAll(blobs, keyOf(bytes), 0, 1),
        (error) => error instanceof SessionError && error.code === "BLOB_NOT_FOUND",
      );
    },
  },
  {
    name: "removes a blob, unless it was renewed or put again since it was listed",
    async run(blobs) {
      const bytes = sampleBytes(3);
      const key = keyOf(bytes);
      await blobs.put(key, sourceOf(bytes));
      const first = await findOne(blobs, key);
      assert.equal(first.size, bytes.length);
      assert.equal(await blobs.renew(key), bytes.length);
      assert.equal(await blobs.remove(key, first.renewedAt), false);
      const second = await findOne(blobs, key);
      await blobs.put(key, sourceOf(bytes));
      assert.equal(await blobs.remove(key, second.renewedAt), false);
      assert.ok((await readAll(blobs, key, 0, bytes.length)).equals(bytes));
      const last = await findOne(blobs, key);
      assert.equal(await blobs.remove(key, last.renewedAt), true);
      assert.equal(await blobs.remove(key, last.renewedAt), false);
      assert.equal(await blobs.size(key), null);
      await blobs.put(key, sourceOf(bytes));
      assert.ok((await readAll(blobs, key, 0, bytes.length)).equals(bytes));
    },
  },
  {
    name: "of renewals and removals at the same time, a blob that was renewed is there",
    async run(blobs) {
      const bytes = sampleBytes(4);
      const key = keyOf(bytes);
      for (let round = 0; round < 30; round++) {
        await blobs.put(key, sourceOf(bytes));
        const { renewedAt } = await findOne(blobs, key);
        const removing = blobs.remove(key, renewedAt);
        const [renewed, removed] = await Promise.all([round % 2 === 0 ? blobs.renew(key) : null, removing]);
        if (renewed !== null) assert.equal(await blobs.size(key), bytes.length, "a renewed blob was removed");
        else assert.equal((await blobs.size(key)) === null, removed);
      }
    },
  },
  {
    name: "stores equal bytes of several writers once",
    async run(blobs) {
      const bytes = sampleBytes(5, 1_200_000);
      await Promise.all([...Array(6)].map(() => blobs.put(keyOf(bytes), sourceOf(bytes))));
      assert.equal((await collect(blobs.list())).length, 1);
      assert.ok((await readAll(blobs, keyOf(bytes), 0, bytes.length)).equals(bytes));
    },
  },
];
