import { checkIsFormat } from "./formats.ts";
import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { createSanitizer, type Sanitizer } from "../../export/index.ts";
import { asFirstVersion, versionNames } from "./entry-version.ts";
import type { ForeignFormat, ForeignSource, Handoff } from "./foreign-format.ts";
import { noteOf } from "./foreign-note.ts";
import { WriteReport } from "./foreign-report.ts";

/** How a session is written in a foreign format. */
export interface WriteForeignOptions {
  /** The directory that the program is to work in (default: the session's, else the present one). */
  readonly cwd?: string;
  /**
   * The id that the program is to know it by (default: the one that it had there). One that the program would not make
   * itself is replaced by one that is derived from it, and that of an imported file by one of the session's id here.
   */
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
    // A directory that the caller names is one that the program must find.
    cwd: clean === undefined || options.cwd !== undefined ? cwd : clean.sanitize(cwd),
    foreignId: foreignIdOf(format, header, options.foreignId),
    entries: () => readShown(store, head, hidden, clean),
  };
  return { pieces: format.write(source, report), report, handoff: format.handoff({ ...source, cwd }), cwd };
}

/** The file that a session was imported from may say any id: only one of the program's own form is used again. */
function foreignIdOf(format: ForeignFormat, header: SessionHeader, asked: string | undefined): string {
  const wanted = asked ?? noteOf(header, format.name)?.id ?? header.id;
  return format.isSessionId(wanted) ? wanted : format.sessionIdFrom(asked ?? header.id);
}

interface HiddenEntries {
  /** The first nodes of branches that were pruned. */
  readonly pruned: ReadonlySet<string>;
  /** Compactions that were undone, with the node that they hang on. */
  readonly compactions: ReadonlyMap<string, string | null>;
  /** Later versions of imported entries, with the ids that the program knows them by. */
  readonly names: ReadonlyMap<string, string>;
}

/** The id that an entry is written under; of a compaction that was undone, that of the node that it hangs on. */
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
  // A parent stands before its children: one that was undone itself already knows what it hangs on.
  for (const [id, parent] of parents) {
    if (!undone.has(id)) continue;
    const moved = parent === null ? undefined : compactions.get(parent);
    compactions.set(id, moved === undefined ? parent : moved);
  }
  const names = await versionNames(store.read(head.header.id, { before: head.version }), pruned);
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
    const shown = asFirstVersion(moved === undefined ? entry : { ...entry, parentId: moved }, names);
    yield sanitizer === undefined ? shown : sanitizer.sanitize(shown);
  }
}
