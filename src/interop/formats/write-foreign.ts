import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionStore } from "../../session/store.ts";
import { createSanitizer, type Sanitizer } from "../../export/index.ts";
import type { ForeignFormat, ForeignSource, Handoff } from "./foreign-format.ts";
import { asUuid } from "./foreign-id.ts";
import { noteOf } from "./foreign-note.ts";
import { WriteReport } from "./foreign-report.ts";

/** How a session is written in a foreign format. */
export interface WriteForeignOptions {
  /** The directory that the program is to work in (default: the session's, else the present one). */
  readonly cwd?: string;
  /** The id that the program is to know it by, a UUID (default: the one that it had there, else one of its id here). */
  readonly foreignId?: string;
  /** Take out secrets and home directories. */
  readonly sanitize?: boolean;
}

/** A session that is to be written in a foreign format. */
export interface ForeignWriting {
  /** The text, in pieces; what was left out is in the report afterwards. */
  readonly pieces: AsyncIterable<string>;
  readonly report: WriteReport;
  /** How the file is given to the program. */
  readonly handoff: Handoff;
  /** The directory that the program is to work in. */
  readonly cwd: string;
}

/**
 * Writes a session as a program would have written it.
 *
 * - What the program itself wrote, and an import has kept, comes out as it was.
 * - Branches that were pruned and compactions that were undone are left out; what the format cannot hold is counted.
 * - Secrets that look like ones are counted in the report, or taken out with `sanitize`.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`.
 */
export async function writeForeign(
  format: ForeignFormat,
  store: SessionStore,
  sessionId: string,
  options: WriteForeignOptions = {},
): Promise<ForeignWriting> {
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  const { header, leafId } = head;
  const report = new WriteReport();
  const hidden = await hiddenEntries(store, head);
  const sanitizer = createSanitizer();
  for await (const entry of readShown(store, head, hidden)) sanitizer.learn(entry);
  report.secrets = sanitizer.secrets;
  const source: ForeignSource = {
    header,
    leafId: leafId === null ? null : (hidden.compactions.get(leafId) ?? leafId),
    cwd: options.cwd ?? header.cwd ?? process.cwd(),
    foreignId: options.foreignId ?? noteOf(header, format.name)?.id ?? asUuid(header.id),
    entries: () => readShown(store, head, hidden, options.sanitize === true ? sanitizer : undefined),
  };
  return { pieces: format.write(source, report), report, handoff: format.handoff(source), cwd: source.cwd };
}

interface HiddenEntries {
  /** The first nodes of branches that were pruned. */
  readonly pruned: ReadonlySet<string>;
  /** Compactions that were undone, with the node that they hang on. */
  readonly compactions: ReadonlyMap<string, string | null>;
}

async function hiddenEntries(store: SessionStore, head: SessionHead): Promise<HiddenEntries> {
  const pruned = new Set<string>();
  const undone = new Set<string>();
  const parents = new Map<string, string | null>();
  for await (const entry of store.read(head.header.id, { before: head.version })) {
    if (entry.type === "prune") pruned.add(entry.targetId);
    if (entry.type === "compaction") parents.set(entry.id, entry.parentId);
    if (entry.type === "compaction_undone") undone.add(entry.targetId);
  }
  const compactions = new Map<string, string | null>();
  for (const id of undone) {
    // One that was undone may hang on another one.
    let parent = parents.get(id) ?? null;
    while (parent !== null && undone.has(parent)) parent = parents.get(parent) ?? null;
    compactions.set(id, parent);
  }
  return { pruned, compactions };
}

async function* readShown(
  store: SessionStore,
  head: SessionHead,
  { pruned, compactions }: HiddenEntries,
  sanitizer?: Sanitizer,
): AsyncGenerator<Entry, void, undefined> {
  const below = new Set(pruned);
  for await (const entry of store.read(head.header.id, { before: head.version })) {
    const { id, parentId } = entry;
    if (isNode(entry) && (below.has(id) || (parentId !== null && below.has(parentId)))) {
      if (below.size > 0) below.add(id);
      continue;
    }
    if (compactions.has(id) || entry.type === "prune" || entry.type === "compaction_undone") continue;
    const moved = parentId === null ? undefined : compactions.get(parentId);
    const shown = moved === undefined ? entry : { ...entry, parentId: moved };
    yield sanitizer === undefined ? shown : sanitizer.sanitize(shown);
  }
}
