import { setTimeout as wait } from "node:timers/promises";
import type { BlobStore, ListedBlob, SweepBlobsOptions, SweptBlobs } from "../../session/blob.ts";
import { rootIdOf } from "../../session/log/header.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import { referencesOf } from "../blobs/attachments.ts";
import { readRange } from "./valid-arguments.ts";

/** Blobs of this age may be removed: it exceeds the duration of any append, and of the wait between an upload and its message. */
const GRACE_MS = 24 * 60 * 60 * 1000;
/** How long a blob without a reference is left between being found and being looked for in the logs. */
const HOLD_MS = 1000;
const LIST_PAGE = 1000;
/** How much the clocks of the processes that append may differ. */
const CLOCKS_MS = 10_000;
const ROUNDS_MAX = 10;

/**
 * Removes the blobs that no log refers to, and that were not renewed within the grace.
 *
 * An append renews its blobs before it stores its entries. So whatever is appended meanwhile, either the renewal makes the removal
 * do nothing, or the entry is in the log that is read here.
 */
export async function sweepBlobs(
  driver: StoreDriver,
  blobs: BlobStore,
  { graceMs = GRACE_MS, scope, signal }: SweepBlobsOptions,
): Promise<SweptBlobs> {
  let count = 0;
  const candidates: ListedBlob[] = [];
  for (const each of scope === undefined ? [undefined] : [scope].flat()) {
    for await (const blob of blobs.list(each)) {
      count += 1;
      if (blob.ageMs >= graceMs) candidates.push(blob);
    }
  }
  const swept = { blobs: count, removed: 0, bytes: 0 };
  if (candidates.length === 0) return swept;
  // A session that cannot be read may refer to anything.
  for (const deleted of [false, true])
    if (((await driver.listing.damaged?.(deleted)) ?? []).length > 0) return { ...swept, unreadable: true };
  if (graceMs < HOLD_MS) await wait(HOLD_MS);
  const used = await new ReferenceReader(driver, new Set(candidates.map((blob) => blob.scope)), signal).read();
  if (used === null) return { ...swept, unreadable: true };
  for (const blob of candidates) {
    signal?.throwIfAborted();
    if (used.has(`${blob.scope}/${blob.hash}`)) continue;
    if (!(await blobs.remove(blob, blob.renewedAt))) continue;
    swept.removed += 1;
    swept.bytes += blob.size;
  }
  return swept;
}

/** Reads which blobs of some scopes the logs of all sessions refer to, deleted ones included. */
class ReferenceReader {
  readonly #driver: StoreDriver;
  readonly #scopes: ReadonlySet<string>;
  readonly #signal: AbortSignal | undefined;
  readonly #used = new Set<string>();
  /** The sessions to read: their scopes, and how many entries each has at least. */
  readonly #unread = new Map<string, { readonly scope: string; readonly version: number }>();
  readonly #read = new Set<string>();

  constructor(driver: StoreDriver, scopes: ReadonlySet<string>, signal: AbortSignal | undefined) {
    this.#driver = driver;
    this.#scopes = scopes;
    this.#signal = signal;
  }

  /**
   * The blobs, as `scope/hash`. Null if sessions are purged again and again before they are read.
   *
   * A session that is forked later than the listing has no references but those of its source, and what is appended later renews
   * its blobs. But if a session is purged before its log is read, a fork of it may have been made that was not listed: then all
   * sessions are listed again.
   */
  async read(): Promise<ReadonlySet<string> | null> {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      await this.#listAll();
      let isComplete = true;
      for (const [sessionId, { scope, version }] of this.#unread) {
        isComplete = (await this.#readLog(sessionId, scope, version)) && isComplete;
        this.#read.add(sessionId);
      }
      this.#unread.clear();
      if (isComplete) return this.#used;
    }
    return null;
  }

  /** Lists deleted sessions before the live ones and after them, so that none is missed that is deleted or undeleted meanwhile. */
  async #listAll(): Promise<void> {
    for (const deleted of [true, false, true]) {
      const newest = await this.#listPages(deleted);
      if (newest !== null) await this.#listSince(newest, deleted);
    }
  }

  /** Lists sessions in pages, the last modified ones first; returns the time of the first, if there was more than one page. */
  async #listPages(deleted: boolean): Promise<string | null> {
    const limit = this.#driver.listing.scans === true ? Number.MAX_SAFE_INTEGER : LIST_PAGE;
    let newest: string | null = null;
    for (let after = null; ; ) {
      const page = await this.#list(deleted, limit, after);
      if (after === null && page.length < limit) return null;
      newest ??= page.at(0)?.modifiedAt ?? null;
      const last = page.at(-1);
      if (last === undefined || page.length < limit) return newest;
      after = { modifiedAt: last.modifiedAt, id: last.header.id };
    }
  }

  /**
   * Lists the sessions that were modified since a time, in one page: an append moves a session to the front of the list, where it
   * is missed if pages before it were read already.
   */
  async #listSince(time: string, deleted: boolean): Promise<void> {
    const since = Date.parse(time) - CLOCKS_MS;
    for (let limit = LIST_PAGE; ; limit *= 2) {
      const page = await this.#list(deleted, limit, null);
      const last = page.at(-1);
      if (last === undefined || page.length < limit || Date.parse(last.modifiedAt) < since) return;
    }
  }

  async #list(deleted: boolean, limit: number, after: Parameters<StoreDriver["listing"]["list"]>[2]) {
    this.#signal?.throwIfAborted();
    const page = await this.#driver.listing.list(deleted ? { deleted } : {}, limit, after);
    for (const { header, version } of page) {
      const scope = rootIdOf(header);
      if (this.#scopes.has(scope) && !this.#read.has(header.id)) this.#unread.set(header.id, { scope, version });
    }
    return page;
  }

  /** Reads a log, whether it is deleted or not; returns whether all of its entries were there. */
  async #readLog(sessionId: string, scope: string, version: number): Promise<boolean> {
    for (const deleted of [false, true, false]) {
      let count = 0;
      for await (const entry of this.#driver.read(sessionId, readRange({ deleted }))) {
        this.#signal?.throwIfAborted();
        for (const hash of referencesOf(entry).keys()) this.#used.add(`${scope}/${hash}`);
        count += 1;
      }
      if (count >= version) return true;
    }
    return false;
  }
}
