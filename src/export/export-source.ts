import { nextSlice } from "../internal/long-work.ts";
import { type Entry, entryCharacters, isNode } from "../session/log/entry.ts";
import { applyEdits, editsOn, outlineOf } from "../session/context/edits.ts";
import { roleSeen } from "../session/log/context-edit.ts";
import { notANode, SessionNotFoundError, UnknownEntryError } from "../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";
import { withData } from "../stores/blobs/message-blobs.ts";
import { walkUp } from "../tree/path-reader.ts";
import type { SteppedSanitizer } from "./sanitizer.ts";

/** How many characters are processed before yielding to the event loop. */
const SLICE_CHARACTERS = 256 * 1024;

/** The session to export, as it was when the export began. */
export interface ExportSource {
  readonly store: SessionStore;
  readonly head: SessionHead;
  /** The last node of the exported path. */
  readonly leafId: string | null;
  readonly sanitizer: SteppedSanitizer | null;
}

/** The data about a log that is collected before its path is written. */
export interface Survey {
  /** The ids of the nodes on the path. */
  readonly onPath: ReadonlySet<string>;
  readonly path: PathSummary;
  readonly labels: ReadonlyMap<string, string>;
  /** What an edit of the context did to an entry, in words. */
  readonly edits: ReadonlyMap<string, string>;
  /** Branches that leave the path, by the node of the path that is their parent (null: they are roots). */
  readonly branches: ReadonlyMap<string | null, BranchPoint>;
}

/** The branches that leave the path at one node. */
export interface BranchPoint {
  readonly count: number;
  /** The first nodes of the first few branches. */
  readonly firstIds: readonly string[];
}

const BRANCHES_NAMED_MAX = 5;

/**
 * The entries of the log, oldest first, up to its version at the start of the export.
 *
 * With `data`, images and files are part of them, as far as an entry can hold them.
 *
 * @throws {SessionNotFoundError} if the session was deleted meanwhile, so that no export is silently incomplete.
 */
export async function* readEntries(
  { store, head }: ExportSource,
  { data = false }: { readonly data?: boolean } = {},
): AsyncGenerator<Entry, void, undefined> {
  let read = 0;
  let characters = 0;
  if (head.version > 0) {
    for await (const entry of store.read(head.header.id, { before: head.version })) {
      read += 1;
      characters += entryCharacters(entry);
      if (characters > SLICE_CHARACTERS) {
        await nextSlice();
        characters = 0;
      }
      yield data ? await withData(entry, { store, sessionId: head.header.id }) : entry;
    }
  }
  if (read < head.version) throw new SessionNotFoundError(head.header.id);
}

/** The ids of the nodes from the root to a leaf. @throws {SessionError} if the leaf does not exist or is a fact. */
export async function readPathIds(store: SessionStore, sessionId: string, leafId: string | null): Promise<Set<string>> {
  const ids = new Set<string>();
  if (leafId === null) return ids;
  await checkNode(store, sessionId, leafId);
  for await (const { id } of walkUp(store, sessionId, leafId)) ids.add(id);
  return ids;
}

/** A separate function, so that a large leaf is not kept in memory while its path is read. */
async function checkNode(store: SessionStore, sessionId: string, leafId: string): Promise<void> {
  const leaf = await store.getEntry(sessionId, leafId);
  if (leaf === null) throw new UnknownEntryError(sessionId, leafId);
  if (!isNode(leaf)) throw notANode(sessionId, leafId);
}

/** Reads the log once and collects branches, labels and the secrets to replace. */
export async function surveyLog(source: ExportSource): Promise<Survey> {
  const { store, head, leafId, sanitizer } = source;
  const onPath = await readPathIds(store, head.header.id, leafId);
  const labels = new Map<string, string>();
  const beside = new Map<string, string | null>();
  let isEdited = false;
  sanitizer?.learn(cleanValue([head.header, head.name]));
  for await (const entry of readEntries(source)) {
    if (sanitizer !== null) await inSlices(sanitizer.learnSteps(cleanValue(entry)));
    if (entry.type === "label" && onPath.has(entry.targetId)) {
      if (entry.label === null) labels.delete(entry.targetId);
      else labels.set(entry.targetId, entry.label);
    }
    isEdited ||= entry.type === "context_edit" && onPath.has(entry.id);
    // Pruned branches are hidden in exports, too.
    if (entry.type === "prune") beside.delete(entry.targetId);
    if (!isNode(entry) || onPath.has(entry.id)) continue;
    if (entry.parentId === null || onPath.has(entry.parentId)) beside.set(entry.id, entry.parentId);
  }
  const path = leafId === null ? EMPTY_PATH : ((await store.path(head.header.id, leafId)) ?? EMPTY_PATH);
  const edits = isEdited ? await readEdits(source, onPath) : new Map<string, string>();
  return { onPath, path, labels, edits, branches: groupByParent(beside) };
}

/** What the edits on a path did to its entries, in words. */
async function readEdits(source: ExportSource, onPath: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const path: Entry[] = [];
  for await (const entry of readEntries(source)) if (onPath.has(entry.id)) path.push(outlineOf(entry));
  const edits = editsOn(path);
  const seen = new Set(applyEdits(path, edits).map(({ id }) => id));
  const found = new Map<string, string>();
  for (const entry of path) {
    if (roleSeen(entry) === null) continue;
    if (!seen.has(entry.id)) found.set(entry.id, "left out of what models see");
    else if (edits.has(entry.id)) found.set(entry.id, "models see another text");
  }
  return found;
}

/** Runs a generator to its end and yields to the event loop between steps. */
export async function inSlices<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await nextSlice();
  }
}

/** Like `shown`, for values that may be large: yields to the event loop. */
export async function shownInSlices<T>({ sanitizer }: ExportSource, value: T): Promise<T> {
  const clean = cleanValue(value);
  return sanitizer === null ? clean : inSlices(sanitizer.sanitizeSteps(clean));
}

/** The value without terminal control sequences and, if the export is sanitized, without secrets. */
export function shown<T>({ sanitizer }: ExportSource, value: T): T {
  // Clean first: a control character could hide a secret from the sanitizer, and removing it later would reveal the secret.
  const clean = cleanValue(value);
  return sanitizer === null ? clean : sanitizer.sanitize(clean);
}

function groupByParent(beside: ReadonlyMap<string, string | null>): Map<string | null, BranchPoint> {
  const branches = new Map<string | null, { count: number; firstIds: string[] }>();
  for (const [id, parentId] of beside) {
    const point = branches.get(parentId) ?? { count: 0, firstIds: [] };
    point.count++;
    if (point.firstIds.length < BRANCHES_NAMED_MAX) point.firstIds.push(id);
    branches.set(parentId, point);
  }
  return branches;
}

/** Terminal escape sequences: colours and cursor movements, titles and links, and single escapes. */
const TERMINAL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to find.
  /[\u001b]\[[0-?]{0,64}[ -/]{0,8}[@-~]|[\u001b]\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[\u001b][@-Z\\-_]/g;
/** Control characters other than tab and newline, and bidirectional overrides, which display text in another order. */
const CONTROLS = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text or JSON value with `\n` as line end, without terminal sequences and bidirectional overrides. Keys of objects stay
 * unchanged.
 */
function cleanValue<T>(value: T): T {
  return clean(value) as T;
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return cleanText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(clean);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item)]));
}

/** A text with `\n` as line end, without terminal sequences, control characters and bidirectional overrides. */
export function cleanText(text: string): string {
  return (
    text
      .replace(TERMINAL, "")
      // Markdown treats a lone carriage return as the end of a line.
      .replace(/\r\n?/g, "\n")
      .replace(CONTROLS, "")
      // Half of a surrogate pair is not a character.
      .replace(/\p{Cs}/gu, "\ufffd")
  );
}
