import { checkIsFormat } from "./formats.ts";
import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { createSanitizer, type Sanitizer } from "../../export/index.ts";
import { withData } from "../../stores/blobs/message-blobs.ts";
import { type EditedEntries, readEdits, withEdit } from "./edited-entries.ts";
import { asFirstVersion, firstVersionIds } from "./entry-version.ts";
import type { ForeignFormat, ForeignSource, Handoff } from "./foreign-format.ts";
import { noteOf } from "./foreign-note.ts";
import { WriteReport } from "./foreign-report.ts";

/** Options of `writeForeign`. */
export interface WriteForeignOptions {
  /** The working directory for the program (default: the session's, else that of this process). */
  readonly cwd?: string;
  /**
   * The session's id in the program (default: its original id there). If the program does not make ids of that form, an id is
   * derived instead: from this option if it is given, else from the session's id here.
   */
  readonly foreignId?: string;
  /** Replaces secrets and home directories by placeholders. */
  readonly sanitize?: boolean;
}

/** The result of `writeForeign`. */
export interface ForeignWriting {
  /** The text, in pieces. The report is complete once they were read. */
  readonly pieces: AsyncIterable<string>;
  readonly report: WriteReport;
  /** How to hand the file to the program. */
  readonly handoff: Handoff;
  /** The working directory for the program. */
  readonly cwd: string;
}

/**
 * Writes a session as the program would have written it.
 *
 * - Data that an import stored from the same program is restored as it was.
 * - Messages are written as models see them at the leaf: edits are applied, and counted in the report.
 * - Pruned branches and undone compactions are omitted. Entries that the format cannot hold are counted in the report.
 * - Texts that look like secrets are counted in the report; `sanitize` replaces them.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`.
 */
export async function writeForeign(
  format: ForeignFormat,
  store: SessionStore,
  sessionId: string,
  options: WriteForeignOptions = {},
): Promise<ForeignWriting> {
  checkIsFormat(format, "writeForeign");
  checkStoreArgument(store, "writeForeign");
  checkOptionsOf(
    options,
    { cwd: true, foreignId: true, sanitize: true } satisfies KeysOf<WriteForeignOptions>,
    "writeForeign",
  );
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  const { header, leafId } = head;
  const report = new WriteReport();
  const hidden = await hiddenEntries(store, head);
  for (const { message } of hidden.edited?.edits.values() ?? [])
    report.omit(message === null ? "message that an edit leaves out" : "text before an edit");
  const sanitizer = createSanitizer();
  for await (const entry of readShown(store, head, hidden)) sanitizer.learn(entry);
  const { metadata, lineage, cwd: ownCwd } = header;
  const cwd = options.cwd ?? ownCwd ?? process.cwd();
  sanitizer.learn({ metadata, lineage });
  report.secrets = sanitizer.secrets;
  const clean = options.sanitize === true ? sanitizer : undefined;
  const source: ForeignSource = {
    header: clean === undefined ? header : { ...header, ...clean.sanitize({ metadata, lineage }) },
    leafId: leafId === null ? null : shownId(hidden, leafId),
    // A directory that the caller names is not sanitized: the program must find it.
    cwd: clean === undefined || options.cwd !== undefined ? cwd : clean.sanitize(cwd),
    foreignId: foreignIdOf(format, header, options.foreignId),
    entries: () => readShown(store, head, hidden, clean),
  };
  return { pieces: format.write(source, report), report, handoff: format.handoff({ ...source, cwd }), cwd };
}

/** The id in an imported file is untrusted: it is reused only if it has the form of the program's own ids. */
function foreignIdOf(format: ForeignFormat, header: SessionHeader, asked: string | undefined): string {
  const wanted = asked ?? noteOf(header, format.name)?.id ?? header.id;
  return format.isSessionId(wanted) ? wanted : format.sessionIdFrom(asked ?? header.id);
}

interface HiddenEntries {
  /** The first nodes of pruned branches. */
  readonly pruned: ReadonlySet<string>;
  /** The messages that edits change; null if there is no edit. */
  readonly edited: EditedEntries | null;
  /** From each undone compaction, edit and omitted message to the node that replaces it as a parent. */
  readonly skipped: ReadonlyMap<string, string | null>;
  /** From later versions of imported entries to the ids that the program knows them by. */
  readonly names: ReadonlyMap<string, string>;
}

/** The id that an entry is written under; for one that is not written, the id of the node that replaces it. */
function shownId({ skipped, names }: HiddenEntries, id: string): string | null {
  const shown = skipped.has(id) ? (skipped.get(id) ?? null) : id;
  return shown === null ? null : (names.get(shown) ?? shown);
}

async function hiddenEntries(store: SessionStore, head: SessionHead): Promise<HiddenEntries> {
  const pruned = new Set<string>();
  const undone = new Set<string>();
  for await (const entry of store.read(head.header.id, { before: head.version })) {
    if (entry.type === "prune") pruned.add(entry.targetId);
    if (entry.type === "compaction_undone") undone.add(entry.targetId);
  }
  const edited = await readEdits(store.read(head.header.id, { before: head.version }), head.leafId);
  const skipped = new Map<string, string | null>();
  const skip = (id: string, parent: string | null): void => {
    const moved = parent === null ? undefined : skipped.get(parent);
    skipped.set(id, moved === undefined ? parent : moved);
  };
  // Parents precede children in the log: the replacement of a skipped parent is already known.
  for await (const { id, parentId } of edited === null && undone.size === 0 ? [] : readNodes(store, head))
    if (undone.has(id) || edited?.leftOut.has(id)) skip(id, parentId);
  const names = await firstVersionIds(store.read(head.header.id, { before: head.version }), pruned);
  return { pruned, edited, skipped, names };
}

async function* readNodes(store: SessionStore, head: SessionHead): AsyncGenerator<Entry, void, undefined> {
  for await (const entry of store.read(head.header.id, { before: head.version })) if (isNode(entry)) yield entry;
}

/** A compaction keeps from the next entry on if its first one is left out. */
function keptInstead(entry: Entry, { next }: EditedEntries): Entry {
  const first = entry.type === "compaction" ? next.get(entry.firstKeptEntryId) : undefined;
  return first === undefined ? entry : ({ ...entry, firstKeptEntryId: first } as Entry);
}

async function* readShown(
  store: SessionStore,
  head: SessionHead,
  { pruned, edited, skipped, names }: HiddenEntries,
  sanitizer?: Sanitizer,
): AsyncGenerator<Entry, void, undefined> {
  const below = new Set(pruned);
  for await (const entry of store.read(head.header.id, { before: head.version })) {
    const { id, parentId } = entry;
    if (isNode(entry) && (below.has(id) || (parentId !== null && below.has(parentId)))) {
      if (below.size > 0) below.add(id);
      continue;
    }
    if (skipped.has(id) || entry.type === "prune" || entry.type === "compaction_undone") continue;
    const moved = parentId === null ? undefined : skipped.get(parentId);
    const kept = edited === null ? entry : keptInstead(withEdit(entry, edited), edited);
    // A line of another program may be longer than an entry.
    const whole = await withData(kept, { store, sessionId: head.header.id }, Number.POSITIVE_INFINITY);
    const shown = asFirstVersion(moved === undefined ? whole : { ...whole, parentId: moved }, names);
    yield sanitizer === undefined ? shown : sanitizer.sanitize(shown);
  }
}
