import { checkIsFormat } from "./formats.ts";
import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { createSanitizer, type Sanitizer } from "../../export/index.ts";
import { withData } from "../../stores/blobs/message-blobs.ts";
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
  /** From each undone compaction to the node that replaces it as a parent. */
  readonly compactions: ReadonlyMap<string, string | null>;
  /** From later versions of imported entries to the ids that the program knows them by. */
  readonly names: ReadonlyMap<string, string>;
}

/** The id that an entry is written under; for an undone compaction, the id of the node that replaces it. */
function shownId({ compactions, names }: HiddenEntries, id: string): string | null {
  const shown = compactions.has(id) ? (compactions.get(id) ?? null) : id;
  return shown === null ? null : (names.get(shown) ?? shown);
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
  // Parents precede children in the log: the replacement of an undone parent is already known.
  for (const [id, parent] of parents) {
    if (!undone.has(id)) continue;
    const moved = parent === null ? undefined : compactions.get(parent);
    compactions.set(id, moved === undefined ? parent : moved);
  }
  const names = await firstVersionIds(store.read(head.header.id, { before: head.version }), pruned);
  return { pruned, compactions, names };
}

async function* readShown(
  store: SessionStore,
  head: SessionHead,
  { pruned, compactions, names }: HiddenEntries,
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
    const whole = await withData(entry, { store, sessionId: head.header.id });
    const shown = asFirstVersion(moved === undefined ? whole : { ...whole, parentId: moved }, names);
    yield sanitizer === undefined ? shown : sanitizer.sanitize(shown);
  }
}
