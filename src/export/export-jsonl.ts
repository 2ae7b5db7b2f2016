import { type Entry, isNode } from "../session/log/entry.ts";
import type { SessionHeader } from "../session/log/header.ts";
import { isSessionId } from "../session/id.ts";
import { formatEntry } from "../stores/jsonl/log-line.ts";
import { blobName } from "../session/blob.ts";
import { referencesOf } from "../stores/blobs/attachments.ts";
import type { ExportOptions } from "./export-session.ts";
import { type ExportSource, inSlices, readEntries, readPathIds } from "./export-source.ts";
import type { Sanitizer } from "./sanitizer.ts";

/**
 * The session as a file of the jsonl store: a line for the header, then a line for each entry.
 *
 * Writes the whole log or, with `onlyPath`, only the nodes of the path and its names, labels and undone compactions.
 */
export async function* exportJsonl(
  source: ExportSource,
  { onlyPath, onBlob }: { readonly onlyPath: boolean; readonly onBlob: ExportOptions["onBlob"] | null },
): AsyncGenerator<string, void, undefined> {
  const { store, head, leafId, sanitizer } = source;
  const onPath = onlyPath ? await readPathIds(store, head.header.id, leafId) : null;
  if (sanitizer !== null) {
    sanitizer.learn(head.header);
    for await (const entry of readEntries(source, { data: onBlob === null }))
      await inSlices(sanitizer.learnSteps(entry));
  }
  const header = onPath === null ? head.header : await headerOfPath(source, onPath);
  yield `${JSON.stringify(sanitizer === null ? header : sanitizeHeader(header, sanitizer))}\n`;
  const told = new Set<string>();
  for await (const entry of readEntries(source, { data: onBlob === null })) {
    if (onPath !== null && !belongs(entry, onPath)) continue;
    for (const hash of onBlob == null ? [] : referencesOf(entry).keys()) {
      if (told.has(hash)) continue;
      told.add(hash);
      const blob = await store.blob(head.header.id, blobName(hash));
      if (blob !== null) await onBlob?.(blob);
    }
    yield `${formatEntry(sanitizer === null ? entry : await inSlices(sanitizer.sanitizeSteps(entry)))}\n`;
  }
}

/** The header with its count of inherited entries reduced to those that belong to the path. */
async function headerOfPath(source: ExportSource, onPath: ReadonlySet<string>): Promise<SessionHeader> {
  const { header } = source.head;
  const { inherited } = header;
  if (inherited === undefined) return header;
  let entries = 0;
  for await (const entry of readEntries(source)) {
    if (entry.seq < inherited.entries && belongs(entry, onPath)) entries += 1;
  }
  return { ...header, inherited: { ...inherited, entries } };
}

function belongs(entry: Entry, onPath: ReadonlySet<string>): boolean {
  if (isNode(entry)) return onPath.has(entry.id);
  if (entry.type === "label" || entry.type === "compaction_undone") return onPath.has(entry.targetId);
  return entry.type === "session_info";
}

/** Sanitizes a header and keeps its ids valid: the placeholder of a secret is no session id, and could not be imported. */
function sanitizeHeader(header: SessionHeader, sanitizer: Sanitizer): SessionHeader {
  const harmless = sanitizer.sanitize(header);
  const { lineage, forkedFrom } = harmless;
  return {
    ...harmless,
    id: asSessionId(harmless.id),
    ...(harmless.rootId === undefined ? {} : { rootId: asSessionId(harmless.rootId) }),
    lineage: { ...lineage, parents: lineage.parents.map(asSessionId) },
    forkedFrom: forkedFrom === null ? null : { ...forkedFrom, sessionId: asSessionId(forkedFrom.sessionId) },
  };
}

function asSessionId(id: string): string {
  const whole: boolean = isSessionId(id);
  return whole ? id : id.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");
}
