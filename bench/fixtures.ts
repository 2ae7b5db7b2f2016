import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHeader, type SessionStore, SessionTree } from "skein";
import { messageOf } from "./message-of.ts";
import { settleFiles } from "./settle-files.ts";
import { type DurableKind, openStoreOf, type StoreKind } from "./store-kind.ts";

/** A session to measure, in a separate open store. */
export interface OpenFixture extends AsyncDisposable {
  readonly store: SessionStore;
  readonly tree: SessionTree;
  readonly folder: string;
  readonly sessionId: string;
  /** Ids of entries from the root to the leaf, evenly distributed. */
  readonly entryIds: readonly string[];
}

/** A session in a folder that no store has open. */
export interface StoredFixture {
  readonly folder: string;
  readonly sessionId: string;
  readonly entryIds: readonly string[];
}

const ENTRY_IDS_MAX = 64;
const LEFTOVER_MS = 6 * 60 * 60 * 1000;

/** A folder that is deleted with its content when it is disposed. */
export interface FixtureFolder extends AsyncDisposable {
  readonly path: string;
}

/** Makes the folder that the sections of one run share. */
export async function openFixtureFolder(parent: string): Promise<FixtureFolder> {
  await mkdir(parent, { recursive: true });
  await removeLeftovers(parent);
  const path = await mkdtemp(join(parent, "run-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Makes sessions of a given length that end with a compaction. Their entries are appended one at a time, as in
 * practice. A stored session is made once in a run and copied for each use.
 */
export class Fixtures {
  readonly #root: string;
  readonly #entriesKept: number;
  readonly #progress: (text: string) => void;

  constructor(root: string, entriesKept: number, progress: (text: string) => void) {
    this.#root = root;
    this.#entriesKept = entriesKept;
    this.#progress = progress;
  }

  /** An empty folder. */
  folder(name: string): Promise<string> {
    return mkdtemp(join(this.#root, `${name}-`));
  }

  /** A session of `entries` entries in an open store. */
  async open(kind: StoreKind, entries: number): Promise<OpenFixture> {
    if (kind !== "memory") return openFixture(kind, await this.copy(kind, entries));
    const store = await openStoreOf(kind, "");
    const { sessionId, entryIds } = await this.#fill(store, entries);
    return opened(store, { folder: "", sessionId, entryIds });
  }

  /** A copy of a session of `entries` entries, in a separate folder. */
  async copy(kind: DurableKind, entries: number): Promise<StoredFixture> {
    const made = await this.shared(kind, entries);
    const folder = await this.folder(`${kind}-${entries}`);
    await cp(made.folder, folder, { recursive: true, preserveTimestamps: true, filter: isWhole });
    return { ...made, folder };
  }

  /** A session of `entries` entries that must not be changed. */
  async shared(kind: DurableKind, entries: number): Promise<StoredFixture> {
    // Recorded in a file, as the sections that share it run in separate processes.
    const record = join(this.#root, `made-${kind}-${entries}.json`);
    try {
      return JSON.parse(await readFile(record, "utf8")) as StoredFixture;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    const made = await this.#make(kind, entries);
    await writeFile(record, JSON.stringify(made));
    return made;
  }

  async #make(kind: DurableKind, entries: number): Promise<StoredFixture> {
    this.#progress(`making a ${kind} session of ${entries} entries`);
    const folder = await this.folder(`made-${kind}-${entries}`);
    const store = await openStoreOf(kind, folder);
    const filled = await this.#fill(store, entries);
    await store.close();
    await settleFiles(kind, folder);
    return { folder, ...filled };
  }

  async #fill(store: SessionStore, entries: number): Promise<{ sessionId: string; entryIds: string[] }> {
    const header = createHeader({ cwd: "/project" });
    await store.create(header);
    const tree = await SessionTree.on(store, header.id);
    const ids: string[] = [];
    for (let index = 0; index < entries - 1; index++) ids.push((await tree.appendMessage(messageOf(index))).id);
    const firstKeptEntryId = ids.at(-this.#entriesKept) ?? (ids[0] as string);
    const summary = "The user asked for several changes; all of them were made and tested.";
    await tree.appendCompaction({ summary, firstKeptEntryId, tokensBefore: entries * 125 });
    const step = Math.max(1, Math.floor(ids.length / ENTRY_IDS_MAX));
    return { sessionId: header.id, entryIds: ids.filter((_, index) => index % step === 0) };
  }
}

/**
 * Leaves out SQLite's side files. All data are in the database file, and a closed connection deletes the side files
 * only when its statements are garbage collected, which may happen during a copy.
 */
function isWhole(path: string): boolean {
  return !/-(wal|shm)$/.test(path);
}

/** Deletes the folders of killed runs; those of active runs are younger. */
async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (Date.now() - (await stat(path)).mtimeMs > LEFTOVER_MS) await rm(path, { recursive: true, force: true });
  }
}

/** Opens the store and the session of a fixture. */
export async function openFixture(kind: DurableKind, fixture: StoredFixture): Promise<OpenFixture> {
  return opened(await openStoreOf(kind, fixture.folder), fixture);
}

async function opened(store: SessionStore, fixture: StoredFixture): Promise<OpenFixture> {
  const tree = await SessionTree.on(store, fixture.sessionId);
  return { ...fixture, store, tree, [Symbol.asyncDispose]: () => store.close() };
}
