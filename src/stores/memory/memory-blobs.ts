import { type BlobKey, type ListedBlob, type BlobSource, type BlobStore, missingBlob } from "../../session/blob.ts";

interface MemoryBlob {
  readonly bytes: Uint8Array;
  renewedAt: number;
}

/** Keeps blobs in the memory of this process. */
export class MemoryBlobs implements BlobStore {
  readonly #clock: () => Date;
  readonly #scopes = new Map<string, Map<string, MemoryBlob>>();

  constructor(clock: () => Date) {
    this.#clock = clock;
  }

  async put(key: BlobKey, source: BlobSource): Promise<void> {
    if ((await this.renew(key)) !== null) return;
    const chunks: Uint8Array[] = [];
    for await (const chunk of source.read()) chunks.push(Uint8Array.from(chunk));
    const scope = this.#scopes.get(key.scope) ?? new Map<string, MemoryBlob>();
    this.#scopes.set(key.scope, scope);
    scope.set(key.hash, { bytes: Buffer.concat(chunks), renewedAt: this.#now() });
  }

  async renew(key: BlobKey): Promise<number | null> {
    const blob = this.#find(key);
    if (blob === undefined) return null;
    // Two renewals within one clock tick must differ.
    blob.renewedAt = Math.max(this.#now(), blob.renewedAt + 0.001);
    return blob.bytes.byteLength;
  }

  async size(key: BlobKey): Promise<number | null> {
    return this.#find(key)?.bytes.byteLength ?? null;
  }

  async *read(key: BlobKey, start: number, end: number): AsyncGenerator<Uint8Array> {
    const blob = this.#find(key);
    if (blob === undefined) throw missingBlob(key);
    if (end > start) yield blob.bytes.slice(start, end);
  }

  async remove(key: BlobKey, renewedAt: number): Promise<boolean> {
    if (this.#find(key)?.renewedAt !== renewedAt) return false;
    return this.#scopes.get(key.scope)?.delete(key.hash) ?? false;
  }

  async *list(scope?: string): AsyncGenerator<ListedBlob> {
    for (const id of scope === undefined ? [...this.#scopes.keys()] : [scope])
      for (const [hash, { bytes, renewedAt }] of [...(this.#scopes.get(id) ?? [])])
        yield { scope: id, hash, size: bytes.byteLength, renewedAt, ageMs: this.#now() - renewedAt };
  }

  #find({ scope, hash }: BlobKey): MemoryBlob | undefined {
    return this.#scopes.get(scope)?.get(hash);
  }

  #now(): number {
    return this.#clock().getTime();
  }
}
