import { cp, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { createHeader, type SessionStore, SessionTree } from "skein";
import { messageOf } from "./message-of.ts";
import { settleFiles } from "./settle-files.ts";
import { type DurableKind, openStoreOf, type StoreKind } from "./store-kind.ts";

/** A session that is ready to be measured, in an open store of its own. */
export interface OpenFixture extends AsyncDisposable {
  readonly store: SessionStore;
  readonly tree: SessionTree;
  readonly folder: string;
  readonly sessionId: string;
  /** Entries from the root to the leaf, evenly spread. */
  readonly entryIds: readonly string[];
}

/** A session that lies in a folder and that nobody has open. */
export interface StoredFixture {
  readonly folder: string;
  readonly sessionId: string;
  readonly entryIds: readonly string[];
}

const ENTRY_IDS_MAX = 64;
const LEFTOVER_MS = 6 * 60 * 60 * 1000;

/**
 * Makes sessions of a given length, appended one entry at a time as in life, that end with a compaction. A stored one is
 * made once and copied for each use. Everything lies below one folder, which disposing removes.
 */
export class Fixtures implements AsyncDisposable {
  readonly #root: string;
  readonly #entriesKept: number;
  readonly #progress: (text: string) => void;
  readonly #stored = new Map<string, Promise<StoredFixture>>();

  private constructor(root: string, entriesKept: number, progress: (text: string) => void) {
    this.#root = root;
    this.#entriesKept = entriesKept;
    this.#progress = progress;
  }

  static async open(parent: string, entriesKept: number, progress: (text: string) => void): Promise<Fixtures> {
    await mkdir(parent, { recursive: true });
    await removeLeftovers(parent);
    return new Fixtures(await mkdtemp(join(parent, "run-")), entriesKept, progress);
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

  /** A copy of a session of `entries` entries, in a folder of its own. */
  async copy(kind: DurableKind, entries: number): Promise<StoredFixture> {
    const made = await this.shared(kind, entries);
    const folder = await this.folder(`${kind}-${entries}`);
    await cp(made.folder, folder, { recursive: true, preserveTimestamps: true, filter: isWhole });
    return { ...made, folder };
  }

  /** A session of `entries` entries that nobody may change. */
  shared(kind: DurableKind, entries: number): Promise<StoredFixture> {
    const key = `${kind} ${entries}`;
    let made = this.#stored.get(key);
    if (made === undefined) this.#stored.set(key, (made = this.#make(kind, entries)));
    return made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#root, { recursive: true, force: true });
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
 * Leaves out SQLite's side files. All that was written is in the database, and a connection that was closed removes them
 * only when the garbage collector comes to its statements, which may be in the middle of a copy.
 */
function isWhole(path: string): boolean {
  return !/-(wal|shm)$/.test(path);
}

/** Removes what runs that were killed have left; a run that is still going is younger. */
async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (Date.now() - (await stat(path)).mtimeMs > LEFTOVER_MS) await rm(path, { recursive: true, force: true });
  }
}

/** Opens a fixture's store and session afresh. */
export async function openFixture(kind: DurableKind, fixture: StoredFixture): Promise<OpenFixture> {
  return opened(await openStoreOf(kind, fixture.folder), fixture);
}

async function opened(store: SessionStore, fixture: StoredFixture): Promise<OpenFixture> {
  const tree = await SessionTree.on(store, fixture.sessionId);
  return { ...fixture, store, tree, [Symbol.asyncDispose]: () => store.close() };
}
