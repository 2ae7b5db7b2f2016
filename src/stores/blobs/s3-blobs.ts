import { createHash } from "node:crypto";
import { uuidv7 } from "../../internal/uuid.ts";
import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { type BlobKey, type BlobSource, type BlobStore, type ListedBlob, missingBlob } from "../../session/blob.ts";
import { SessionError, show } from "../../session/errors.ts";
import { S3Client, type S3Credentials, type S3Object } from "./s3-client.ts";

/** Options of `s3Blobs`. */
export interface S3BlobsOptions {
  /** The address of the server, such as `https://s3.eu-central-1.amazonaws.com`. The bucket is part of the path. */
  readonly endpoint: string;
  readonly bucket: string;
  /** The credentials, or a function that returns them before each request. */
  readonly credentials: S3Credentials | (() => Promise<S3Credentials>);
  /** Default: `"us-east-1"`. */
  readonly region?: string;
  /** All keys begin with it (default: `""`). */
  readonly prefix?: string;
}

const S3_KEYS: KeysOf<S3BlobsOptions> = {
  endpoint: true,
  bucket: true,
  credentials: true,
  region: true,
  prefix: true,
};

/** The end of the key of an object that marks a copy as renewed. */
const RENEWED = ".renewed";
/** In the key of an object that marks a copy as being removed. */
const REMOVING = ".removing.";
/** A removal takes less time than this, so an older mark is of a process that was killed. */
const STALE_MS = 60 * 60 * 1000;
/** A removal that took longer than this is given up. */
const REMOVAL_MS_MAX = 10 * 60 * 1000;
const ATTEMPTS_MAX = 5;
const HASH = /^[0-9a-f]{64}$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX = /^(?:\w[\w.-]*\/)*(?:\w[\w.-]*)?$/;

/**
 * Keeps blobs as objects of a bucket of S3, or of any server with its interface that lists what was just written. Needs the
 * package `aws4fetch`.
 *
 * @throws {SessionError} `INVALID_OPTION`.
 */
export function s3Blobs(options: S3BlobsOptions): BlobStore {
  checkOptionsOf(options, S3_KEYS, "s3Blobs");
  const { endpoint, bucket, credentials, region = "us-east-1", prefix = "" } = options;
  if (typeof endpoint !== "string" || !/^https?:$/.test(protocolOf(endpoint)))
    throw new SessionError(
      "INVALID_OPTION",
      `endpoint is ${show(endpoint)}; it must be an address with http or https.`,
    );
  if (typeof bucket !== "string" || !BUCKET.test(bucket))
    throw new SessionError("INVALID_OPTION", `bucket is ${show(bucket)}; it must be the name of a bucket.`);
  if (typeof region !== "string" || region === "")
    throw new SessionError("INVALID_OPTION", `region is ${show(region)}; it must be the name of a region.`);
  if (typeof prefix !== "string" || !PREFIX.test(prefix))
    throw new SessionError(
      "INVALID_OPTION",
      `prefix is ${show(prefix)}; it may have letters, digits, ".", "_" and "-", in parts that "/" ends.`,
    );
  if (typeof credentials !== "function" && !isCredentials(credentials))
    throw new SessionError(
      "INVALID_OPTION",
      "credentials must have accessKeyId and secretAccessKey, or be a function that returns them.",
    );
  return new S3Blobs(new S3Client({ endpoint, bucket, region, credentials }), prefix);
}

/** One stored copy of a blob, with its marks. */
interface Copy {
  readonly name: string;
  readonly data: S3Object | null;
  /** The object of an upload that ended early. S3 does not store such a one; other servers do. */
  readonly torn: S3Object | null;
  readonly renewed: S3Object | null;
  readonly removing: readonly S3Object[];
}

/** What a listing says of a blob. */
interface Found {
  readonly copies: readonly Copy[];
  readonly now: number;
}

/**
 * A blob is an object `<scope>/<hash>/<name>`, whose name no other upload ever has, and ends with its size. Two kinds of marks are objects beside it:
 * `<name>.renewed`, and `<name>.removing.<id>` of a removal.
 *
 * Renewing and removing exclude each other by the order of their requests, so that no server must support conditions: a renewal
 * writes its mark and then looks for marks of removals; a removal writes its mark and then looks whether something was renewed.
 * At least one of them sees the mark of the other. A renewal that sees a removal takes the copy as gone, and `put` uploads
 * another. So a removal never touches a copy that it has not listed.
 */
class S3Blobs implements BlobStore {
  readonly #client: S3Client;
  readonly #prefix: string;

  constructor(client: S3Client, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
  }

  async put(key: BlobKey, source: BlobSource): Promise<void> {
    if ((await this.renew(key)) !== null) return;
    await this.#client.put(`${this.#folderOf(key)}${uuidv7()}-${source.size}`, source, key.hash);
    const { copies, now } = await this.#look(key);
    const [kept] = copies.filter((copy) => isLive(copy, now));
    // Another process has stored the same bytes at the same time, or a removal was killed.
    for (const copy of copies)
      if (kept !== undefined && copy !== kept) await this.#removeCopies(key, { copies: [copy], now });
  }

  async renew(key: BlobKey): Promise<number | null> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { copies, now } = await this.#look(key);
      const copy = copies.find((each) => isLive(each, now));
      if (copy === undefined) return null;
      await this.#mark(`${this.#folderOf(key)}${copy.name}${RENEWED}`);
      for (const stale of copy.removing) await this.#client.remove(stale.key);
      const again = (await this.#look(key)).copies.find(({ name }) => name === copy.name);
      if (again?.data && again.removing.length === 0) return again.data.size;
    }
    return null;
  }

  async size(key: BlobKey): Promise<number | null> {
    return (await this.#find(key))?.size ?? null;
  }

  async *read(key: BlobKey, start: number, end: number): AsyncGenerator<Uint8Array> {
    let at = start;
    for (let attempt = 1; at < end || attempt === 1; attempt++) {
      const found = await this.#find(key);
      if (found === null) throw missingBlob(key);
      if (at >= end) return;
      // Another copy may be there instead, and a connection may end early.
      const chunks = await this.#client.get(found.key, at, end);
      try {
        for await (const chunk of chunks ?? []) {
          yield chunk;
          at += chunk.byteLength;
        }
      } catch (error) {
        if (attempt >= ATTEMPTS_MAX) throw error;
      }
      if (at < end && attempt >= ATTEMPTS_MAX)
        throw new SessionError(
          "STORE_FAILED",
          `S3 sends ${at - start} of the bytes ${start} to ${end} of ${found.key}.`,
        );
    }
  }

  async remove(key: BlobKey, renewedAt: number): Promise<boolean> {
    const found = await this.#look(key);
    if (!found.copies.some(({ data }) => data !== null) || stateOf(found.copies) !== renewedAt) return false;
    return this.#removeCopies(key, found);
  }

  /** Also removes the marks of copies that are gone. */
  async *list(scope?: string): AsyncGenerator<ListedBlob> {
    const prefix = scope === undefined ? this.#prefix : `${this.#prefix}${scope}/`;
    let group: { readonly name: string; readonly objects: S3Object[] } | null = null;
    let now = 0;
    for await (const page of this.#client.list(prefix)) {
      now = page.now;
      for (const object of page.objects) {
        const name = object.key.slice(this.#prefix.length, object.key.lastIndexOf("/"));
        if (group !== null && group.name === name) {
          group.objects.push(object);
          continue;
        }
        if (group !== null) yield* this.#listed(group.name, group.objects, now);
        group = { name, objects: [object] };
      }
    }
    if (group !== null) yield* this.#listed(group.name, group.objects, now);
  }

  async *#listed(name: string, objects: readonly S3Object[], now: number): AsyncGenerator<ListedBlob> {
    const [scope = "", hash = "", ...more] = name.split("/");
    if (!HASH.test(hash) || more.length > 0) return;
    const copies = copiesOf(objects);
    const sizes = copies.flatMap(({ data }) => data?.size ?? []);
    if (sizes.length > 0) {
      const latest = Math.max(
        ...copies.map(({ data, renewed }) => Math.max(data?.modifiedAt ?? 0, renewed?.modifiedAt ?? 0)),
      );
      yield { scope, hash, size: sizes[0] as number, renewedAt: stateOf(copies), ageMs: now - latest };
      return;
    }
    for (const { key, modifiedAt } of objects) if (now - modifiedAt > STALE_MS) await this.#client.remove(key);
  }

  /** Removes copies, unless something was renewed since they were found. */
  async #removeCopies(key: BlobKey, { copies }: Found): Promise<boolean> {
    const began = performance.now();
    const folder = this.#folderOf(key);
    const id = uuidv7();
    const names = new Set(copies.map(({ name }) => name));
    const own = copies.map(({ name }) => `${folder}${name}${REMOVING}${id}`);
    for (const mark of own) await this.#mark(mark);
    const there = (await this.#look(key)).copies.filter(({ name }) => names.has(name));
    if (stateOf(there) !== stateOf(copies) || performance.now() - began > REMOVAL_MS_MAX) {
      for (const mark of own) await this.#client.remove(mark);
      return false;
    }
    for (const { data, torn, renewed, removing } of there) {
      for (const object of [data, torn]) if (object !== null) await this.#client.remove(object.key);
      if (renewed !== null) await this.#client.remove(renewed.key);
      for (const mark of removing) await this.#client.remove(mark.key);
    }
    return true;
  }

  /** Any copy whose bytes are there, also one that is being removed. */
  async #find(key: BlobKey): Promise<S3Object | null> {
    const { copies, now } = await this.#look(key);
    const readable = copies.filter(({ data }) => data !== null);
    return (readable.find((copy) => isLive(copy, now)) ?? readable[0])?.data ?? null;
  }

  async #look(key: BlobKey): Promise<Found> {
    const objects: S3Object[] = [];
    let now = 0;
    for await (const page of this.#client.list(this.#folderOf(key))) {
      objects.push(...page.objects);
      now = page.now;
    }
    return { copies: copiesOf(objects), now };
  }

  /** Writes a mark that no other mark equals, so that its entity tag changes. */
  async #mark(key: string): Promise<void> {
    const bytes = Buffer.from(uuidv7());
    const body: BlobSource = {
      size: bytes.length,
      bytes,
      async *read() {
        yield bytes;
      },
    };
    await this.#client.put(key, body, createHash("sha256").update(bytes).digest("hex"));
  }

  #folderOf({ scope, hash }: BlobKey): string {
    return `${this.#prefix}${scope}/${hash}/`;
  }
}

/** Whether a copy can be renewed: nobody is removing it. */
function isLive({ data, removing }: Copy, now: number): boolean {
  return data !== null && removing.every(({ modifiedAt }) => now - modifiedAt > STALE_MS);
}

/** The copies that some objects are, in the order of their names. */
function copiesOf(objects: readonly S3Object[]): readonly Copy[] {
  type Made = { -readonly [Field in keyof Copy]: Copy[Field] } & { removing: S3Object[] };
  const copies = new Map<string, Made>();
  for (const object of objects) {
    const last = object.key.slice(object.key.lastIndexOf("/") + 1);
    const [name = ""] = last.split(".");
    const copy: Made = copies.get(name) ?? { name, data: null, torn: null, renewed: null, removing: [] };
    copies.set(name, copy);
    const isWhole = Number(name.slice(name.lastIndexOf("-") + 1)) === object.size;
    if (last !== name) {
      if (last === name + RENEWED) copy.renewed = object;
      else copy.removing.push(object);
    } else if (isWhole) copy.data = object;
    else copy.torn = object;
  }
  return [...copies.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** A number that every upload and renewal changes. */
function stateOf(copies: readonly Copy[]): number {
  const facts = copies.map(({ name, data, renewed }) => [
    name,
    ...[data, renewed].map((each) => each && [each.etag, each.modifiedAt]),
  ]);
  return createHash("sha256").update(JSON.stringify(facts)).digest().readUIntBE(0, 6);
}

function protocolOf(endpoint: string): string {
  try {
    return new URL(endpoint).protocol;
  } catch {
    return "";
  }
}

function isCredentials(value: unknown): value is S3Credentials {
  const { accessKeyId, secretAccessKey } = (value ?? {}) as Partial<S3Credentials>;
  return (
    typeof accessKeyId === "string" &&
    accessKeyId !== "" &&
    typeof secretAccessKey === "string" &&
    secretAccessKey !== ""
  );
}
