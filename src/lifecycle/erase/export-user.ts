import type { Entry } from "../../session/log/entry.ts";
import { checkName } from "../../session/id.ts";
import type { Checkpoint, SessionStore } from "../../session/store.ts";
import { authoredBy, type FoundSession, findSessions, readFound } from "./plan-erase.ts";

/** What is held about a user, as one archive, as `SessionManager.exportUser` says. */
export async function* exportUser(store: SessionStore, userId: string, now: Date): AsyncGenerator<Uint8Array> {
  checkName(userId, "a user");
  yield* tarOf(filesOf(store, userId, now), now);
}

async function* filesOf(store: SessionStore, userId: string, now: Date): AsyncGenerator<ArchivedFile> {
  const sessions: { file: string; sessionId: string; deleted: boolean }[] = [];
  const elsewhere: { file: string; sessionId: string }[] = [];
  const own = new Set<string>();
  for await (const found of findSessions(store, { userId })) {
    const { id } = found.head.header;
    const name = numbered("sessions", sessions.length, "jsonl");
    own.add(id);
    sessions.push({ file: name, sessionId: id, deleted: found.deleted });
    yield { name, content: linesOf([found.head.header, ...(await readFound(store, found))]) };
    const checkpoints = await checkpointsOf(store, found);
    if (checkpoints.length === 0) continue;
    yield { name: numbered("checkpoints", sessions.length - 1, "jsonl"), content: linesOf(checkpoints) };
  }
  const isTheirs = ({ by }: Entry): boolean => by === userId;
  for await (const ids of authoredBy(store, userId, isTheirs)) {
    for (const id of ids) {
      const head = own.has(id) ? null : await store.head(id);
      if (head === null) continue;
      const said: Entry[] = [];
      for await (const entry of store.read(id)) if (isTheirs(entry)) said.push(entry);
      const name = numbered("elsewhere", elsewhere.length, "jsonl");
      elsewhere.push({ file: name, sessionId: id });
      yield { name, content: linesOf(said) };
    }
  }
  yield { name: "about.json", content: linesOf([{ userId, exportedAt: now.toISOString(), sessions, elsewhere }]) };
}

/** Those of a deleted session are hidden with it. */
async function checkpointsOf(store: SessionStore, { head, deleted }: FoundSession): Promise<readonly Checkpoint[]> {
  return deleted ? [] : store.listCheckpoints(head.header.id);
}

function numbered(folder: string, index: number, ending: string): string {
  return `${folder}/${String(index + 1).padStart(6, "0")}.${ending}`;
}

function linesOf(values: readonly unknown[]): Uint8Array {
  return Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
}

const BLOCK_BYTES = 512;

/** A file of an archive. */
interface ArchivedFile {
  /** At most 100 characters of ASCII, with slashes. */
  readonly name: string;
  readonly content: Uint8Array;
}

/** An archive of files as `tar` reads it (ustar), in pieces; `modifiedAt` is the time of all of them. */
async function* tarOf(files: AsyncIterable<ArchivedFile>, modifiedAt: Date): AsyncGenerator<Uint8Array> {
  for await (const { name, content } of files) {
    yield headerOf(name, content.length, modifiedAt);
    yield content;
    yield new Uint8Array(-content.length & (BLOCK_BYTES - 1));
  }
  yield new Uint8Array(2 * BLOCK_BYTES);
}

function headerOf(name: string, bytes: number, modifiedAt: Date): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`;
  header.write(name, 0, 100, "ascii");
  header.write(octal(0o600, 8) + octal(0, 8) + octal(0, 8), 100, "ascii");
  header.write(octal(bytes, 12) + octal(Math.floor(modifiedAt.getTime() / 1000), 12), 124, "ascii");
  // The sum is taken with spaces where it goes itself.
  header.write("        0", 148, "ascii");
  header.write("ustar\x0000", 257, "ascii");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return header;
}
