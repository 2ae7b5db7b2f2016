import { defined } from "../../internal/defined.ts";
import { SessionError } from "../../session/errors.ts";
import type { Entry } from "../../session/log/entry.ts";
import { checkName } from "../../session/id.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { Checkpoint, SessionStore } from "../../session/store.ts";
import { blobHash, blobName, type StoredBlob } from "../../session/blob.ts";
import { rootIdOf } from "../../session/log/header.ts";
import { referencesOf } from "../../stores/blobs/attachments.ts";
import { type BlobPlace, withData } from "../../stores/blobs/message-blobs.ts";
import { authoredBy, type FoundSession, findSessions } from "./plan-erase.ts";

/** The most entries in one read, and the characters after which a read stops. */
const ENTRIES_AT_ONCE = 1000;
const CHARACTERS_AT_ONCE = 256 * 1024;

/** Everything stored about a user, as one archive; see `SessionManager.exportUser`. */
export async function* exportUser(store: SessionStore, userId: string, now: Date): AsyncGenerator<Uint8Array> {
  checkName(userId, "a user");
  yield* tarOf(filesOf(store, userId, now), now);
}

async function* filesOf(store: SessionStore, userId: string, now: Date): AsyncGenerator<ArchivedFile | ArchivedBlob> {
  const sessions: { file: string; sessionId: string; deleted: boolean }[] = [];
  const elsewhere: { file: string; sessionId: string }[] = [];
  const own = new Set<string>();
  const files = new BlobFiles();
  for await (const found of findSessions(store, { userId })) {
    const { id } = found.head.header;
    const name = numbered("sessions", sessions.length, "jsonl");
    own.add(id);
    sessions.push({ file: name, sessionId: id, deleted: found.deleted });
    yield { name, lines: () => logOf(store, found, files) };
    yield* files.next();
    const checkpoints = await store.listCheckpoints(id, { deleted: found.deleted });
    if (checkpoints.length === 0) continue;
    yield { name: numbered("checkpoints", sessions.length - 1, "jsonl"), lines: () => linesOf(checkpoints) };
  }
  const isTheirs = ({ by }: Entry): boolean => by === userId;
  for await (const ids of authoredBy(store, userId, isTheirs)) {
    for (const id of ids) {
      const head = own.has(id) ? null : await store.head(id);
      if (head === null) continue;
      const name = numbered("elsewhere", elsewhere.length, "jsonl");
      elsewhere.push({ file: name, sessionId: id });
      const made = (await store.listCheckpoints(id)).filter(({ by }) => by === userId);
      yield { name, lines: () => authoredIn(store, head, isTheirs, made, files) };
      yield* files.next();
    }
  }
  const about = { userId, exportedAt: now.toISOString(), sessions, elsewhere };
  yield { name: "about.json", lines: () => linesOf([about]) };
}

function numbered(folder: string, index: number, ending: string): string {
  return `${folder}/${String(index + 1).padStart(6, "0")}.${ending}`;
}

function* linesOf(values: readonly unknown[]): Generator<string> {
  for (const value of values) yield `${JSON.stringify(value)}\n`;
}

/** The images and files that are too large for a line: each is a file of the archive, once, named by its hash. */
class BlobFiles {
  readonly #named = new Set<string>();
  readonly #pending: StoredBlob[] = [];

  /** An entry with the data of its images and files, as far as it fits into an entry. */
  async put<T extends Entry>(entry: T, place: BlobPlace): Promise<T> {
    const whole = await withData(entry, place);
    for (const hash of referencesOf(whole).keys()) {
      const { store, sessionId, root } = place;
      const found = this.#named.has(hash) ? null : await store.blob(sessionId, blobName(hash), defined({ root }));
      if (found === null) continue;
      this.#named.add(hash);
      this.#pending.push(found);
    }
    return whole;
  }

  /** Returns the files that were found in entries since the last call, and forgets them. */
  *next(): Generator<ArchivedBlob> {
    for (const blob of this.#pending.splice(0)) yield { name: `blobs/${blobHash(blob.blob) ?? ""}`, blob };
  }
}

/** The header and the entries of a session, up to its head. */
async function* logOf(store: SessionStore, { head, deleted }: FoundSession, files: BlobFiles): AsyncGenerator<string> {
  const { header, version } = head;
  const place: BlobPlace = { store, sessionId: header.id, root: rootIdOf(header) };
  yield `${JSON.stringify(header)}\n`;
  for (let after = -1; after < version - 1; ) {
    const range = { after, before: version, limit: ENTRIES_AT_ONCE, charactersMax: CHARACTERS_AT_ONCE, deleted };
    const texts = await store.readJson(header.id, range);
    if (texts.length === 0) return;
    after += texts.length;
    for (const text of texts)
      yield text.includes("sha256:")
        ? `${JSON.stringify(await files.put(JSON.parse(text) as Entry, place))}\n`
        : `${text}\n`;
  }
}

/** The entries and checkpoints that a user authored in a session of another user. */
async function* authoredIn(
  store: SessionStore,
  { header, version }: SessionHead,
  isTheirs: (entry: Entry) => boolean,
  made: readonly Checkpoint[],
  files: BlobFiles,
): AsyncGenerator<string> {
  for await (const entry of store.read(header.id, { before: version }))
    if (isTheirs(entry)) yield* linesOf([await files.put(withoutAgent(entry), { store, sessionId: header.id })]);
  yield* linesOf(made);
}

/** A setup of a run that they requested, without the instructions and tools of the agent, which are not theirs. */
function withoutAgent(entry: Entry): Entry {
  if (entry.type !== "setup") return entry;
  const { instructions: _instructions, tools: _tools, ...own } = entry;
  return own;
}

const BLOCK_BYTES = 512;

/** A file in an archive. */
interface ArchivedFile {
  /** At most 100 ASCII characters; folders are separated by slashes. */
  readonly name: string;
  /** Produces the file's lines; called twice, with equal results. */
  readonly lines: () => Iterable<string> | AsyncIterable<string>;
}

/** An image or a file in an archive. */
interface ArchivedBlob {
  readonly name: string;
  readonly blob: StoredBlob;
}

/** Writes files as a tar archive (ustar), in chunks; `modifiedAt` is the time of all files. */
async function* tarOf(files: AsyncIterable<ArchivedFile | ArchivedBlob>, modifiedAt: Date): AsyncGenerator<Uint8Array> {
  for await (const file of files) {
    const { name } = file;
    if ("blob" in file) {
      const { size } = file.blob;
      yield headerOf(name, size, modifiedAt);
      yield* file.blob.stream();
      yield new Uint8Array(-size & (BLOCK_BYTES - 1));
      continue;
    }
    const { lines } = file;
    // The header of a file contains its length, so the lines are read twice instead of being kept in memory.
    let bytes = 0;
    for await (const line of lines()) bytes += Buffer.byteLength(line);
    yield headerOf(name, bytes, modifiedAt);
    let left = bytes;
    for await (const line of lines()) {
      const content = Buffer.from(line);
      left -= content.length;
      yield content;
    }
    if (left !== 0) {
      throw new SessionError("CONFLICT", `The contents of ${name} were erased during the export; export again.`);
    }
    yield new Uint8Array(-bytes & (BLOCK_BYTES - 1));
  }
  yield new Uint8Array(2 * BLOCK_BYTES);
}

function headerOf(name: string, bytes: number, modifiedAt: Date): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`;
  header.write(name, 0, 100, "ascii");
  header.write(octal(0o600, 8) + octal(0, 8) + octal(0, 8), 100, "ascii");
  header.write(octal(bytes, 12) + octal(Math.floor(modifiedAt.getTime() / 1000), 12), 124, "ascii");
  // The checksum is computed with spaces in its own field.
  header.write("        0", 148, "ascii");
  header.write("ustar\x0000", 257, "ascii");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return header;
}
