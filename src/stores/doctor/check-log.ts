import { type Entry, isNode } from "../../session/log/entry.ts";
import { show } from "../../session/errors.ts";
import {
  EMPTY_PATH,
  emptyHead,
  type PathSummary,
  type SessionHead,
  stepHead,
  stepPath,
} from "../../session/log/fold.ts";
import { entryText } from "../../session/search.ts";
import { openRunsAsStored } from "../../session/log/open-runs.ts";
import { SettingsTable } from "../../session/log/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import { canonicalJson } from "./log-digest.ts";
import type { FindingKind } from "./store-finding.ts";

const LOOKUP_ENTRIES = 64;

/** Reports a finding about the session that is being checked. */
export type ReportForSession = (kind: FindingKind, message: string) => void;

/** The result of checking a log. */
export interface CheckedLog {
  readonly entries: number;
  /** The position and path of each entry by id; the path is null for a fact. */
  readonly positions: ReadonlyMap<string, { readonly seq: number; readonly path: PathSummary | null }>;
  /** A word from the first text and one from the last, for a test of the search. */
  readonly words: readonly string[];
}

/** Reads and folds a log up to a head's version, and compares the fold with that head and the entries with look-ups by id. */
export async function checkLog(
  store: SessionStore,
  head: SessionHead,
  report: ReportForSession,
  signal: AbortSignal | undefined,
): Promise<CheckedLog> {
  const fold = new LogFold(head, report);
  const { id } = head.header;
  let batch: Entry[] = [];
  const lookUp = async (): Promise<void> => {
    signal?.throwIfAborted();
    await Promise.all(batch.map((entry) => checkLookup(store, id, entry, fold, report)));
    batch = [];
  };
  for await (const entry of store.read(id, { before: head.version })) {
    fold.step(entry);
    batch.push(entry);
    if (batch.length === LOOKUP_ENTRIES) await lookUp();
  }
  await lookUp();
  await fold.finish(store, head);
  return { entries: fold.entries, positions: fold.positions, words: fold.words };
}

async function checkLookup(
  store: SessionStore,
  sessionId: string,
  entry: Entry,
  fold: LogFold,
  report: ReportForSession,
): Promise<void> {
  const [found, path] = await Promise.all([store.getEntry(sessionId, entry.id), store.path(sessionId, entry.id)]);
  if (found === null) report("entry", `Entry ${show(entry.id)} is in the log but is not found by its id.`);
  else if (canonicalJson(found) !== canonicalJson(entry))
    report("entry", `The lookup of entry ${show(entry.id)} by its id returns other content than the log.`);
  const folded = fold.positions.get(entry.id)?.path ?? null;
  if (!fold.broken && !(await fold.isSamePath(store, path, folded)))
    report("path", `The path summary of entry ${show(entry.id)} is not the fold of its ancestors.`);
}

/** Folds a log that may be invalid in any way. */
class LogFold {
  readonly positions = new Map<string, { readonly seq: number; readonly path: PathSummary | null }>();
  readonly words: string[] = [];
  entries = 0;
  /** Whether the log refers to missing entries, so that its fold cannot be compared with anything. */
  broken = false;
  readonly #report: ReportForSession;
  readonly #settings = new SettingsTable();
  #head: SessionHead;
  #position = 0;

  constructor({ header, updatedAt }: SessionHead, report: ReportForSession) {
    this.#report = report;
    this.#head = { ...emptyHead(header), updatedAt };
  }

  step(entry: Entry): void {
    this.entries += 1;
    if (entry.seq !== this.#position)
      this.#break("seq", `Entry ${show(entry.id)} has position ${entry.seq} instead of ${this.#position}.`);
    this.#position = entry.seq + 1;
    if (this.positions.has(entry.id)) this.#break("duplicate", `The log has the entry id ${show(entry.id)} twice.`);
    const path = isNode(entry)
      ? stepPath(this.#pathOf(entry.parentId, "parent", entry), entry, this.#head.header, this.#settings.at)
      : null;
    this.#settings.add(path?.settings ?? null);
    this.#checkTarget(entry);
    const target = entry.type === "leaf" ? this.#pathOf(entry.targetId, "target", entry) : EMPTY_PATH;
    this.positions.set(entry.id, { seq: entry.seq, path });
    this.#head = stepHead(this.#head, entry, path ?? target, this.#head.updatedAt);
    // Use only ASCII letters and digits: they have the same lower case in every text and index.
    const [word] = /[A-Za-z0-9]{3,40}/.exec(entryText(entry)) ?? [];
    if (word !== undefined) this.words.splice(1, 1, word);
  }

  /** Whether two path summaries are equal. Entries of format 1 store all settings, later ones store only the changes. */
  async isSamePath(store: SessionStore, path: PathSummary | null, folded: PathSummary | null): Promise<boolean> {
    if (canonicalJson(path) === canonicalJson(folded)) return true;
    if (path === null || folded === null || path.settings === null || folded.settings === null) return false;
    const settings = await store.settings(this.#head.header.id, path);
    const expected = { ...folded, settings: this.#settings.read(folded.settings) };
    return canonicalJson({ ...path, settings }) === canonicalJson(expected);
  }

  async finish(store: SessionStore, head: SessionHead): Promise<void> {
    if (this.#position !== head.version)
      this.#break("head", `The head has version ${head.version}, and the log has ${this.#position} entries.`);
    if (this.broken) return;
    const same = await this.isSamePath(store, head.path, this.#head.path);
    const fields = Object.keys({ ...this.#head, ...head }) as (keyof SessionHead)[];
    const expected = { ...this.#head, openRuns: openRunsAsStored(this.#head.openRuns, head.openRuns) };
    const wrong = fields.filter((field) =>
      field === "path" ? !same : canonicalJson(head[field]) !== canonicalJson(expected[field]),
    );
    if (wrong.length > 0) this.#report("head", `The head is not the fold of the log, in ${wrong.join(", ")}.`);
  }

  #pathOf(id: string | null, kind: "parent" | "target", entry: Entry): PathSummary {
    if (id === null) return EMPTY_PATH;
    const path = this.positions.get(id)?.path;
    if (path !== undefined && path !== null) return path;
    this.#break(kind, `Entry ${show(entry.id)} refers to the node ${show(id)}, which does not come before it.`);
    return EMPTY_PATH;
  }

  #checkTarget(entry: Entry): void {
    if (entry.type !== "label" && entry.type !== "prune" && entry.type !== "compaction_undone") return;
    if (this.positions.has(entry.targetId)) return;
    const message = `Entry ${show(entry.id)} refers to ${show(entry.targetId)}, which does not come before it.`;
    this.#report("target", message);
  }

  #break(kind: FindingKind, message: string): void {
    this.broken = true;
    this.#report(kind, message);
  }
}
