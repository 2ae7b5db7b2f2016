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
/** While sessions are listed, an append can move one from a page to come to one that was read, so the listing is read again. */
const PASSES = 2;

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
  for await (const blob of blobs.list(scope)) {
    count += 1;
    if (blob.ageMs >= graceMs) candidates.push(blob);
  }
  const swept = { blobs: count, removed: 0, bytes: 0 };
  if (candidates.length === 0) return swept;
  if (graceMs < HOLD_MS) await wait(HOLD_MS);
  // A session that cannot be read may refer to anything.
  for (const deleted of [false, true])
    if (((await driver.listing.damaged?.(deleted)) ?? []).length > 0) return { ...swept, unreadable: true };
  const used = await readReferences(driver, new Set(candidates.map((blob) => blob.scope)), signal);
  for (const blob of candidates) {
    signal?.throwIfAborted();
    if (used.has(`${blob.scope}/${blob.hash}`)) continue;
    if (!(await blobs.remove(blob, blob.renewedAt))) continue;
    swept.removed += 1;
    swept.bytes += blob.size;
  }
  return swept;
}

/** Which blobs of some scopes the logs of all sessions refer to, deleted ones included. */
async function readReferences(
  driver: StoreDriver,
  scopes: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  const versions = new Map<string, number>();
  for (let pass = 0; pass < PASSES; pass++) {
    for (const deleted of [false, true]) {
      for (let after = null; ; ) {
        signal?.throwIfAborted();
        const heads = await driver.listing.list(deleted ? { deleted } : {}, LIST_PAGE, after);
        for (const { header } of heads) {
          const scope = rootIdOf(header);
          if (!scopes.has(scope)) continue;
          const range = readRange({ after: (versions.get(header.id) ?? 0) - 1, deleted });
          for await (const entry of driver.read(header.id, range)) {
            for (const hash of referencesOf(entry).keys()) used.add(`${scope}/${hash}`);
            versions.set(header.id, entry.seq + 1);
          }
        }
        const last = heads.at(-1);
        if (last === undefined || heads.length < LIST_PAGE) break;
        after = { modifiedAt: last.modifiedAt, id: last.header.id };
      }
    }
  }
  return used;
}
