import type { Entry } from "../../session/log/entry.ts";
import { LineageError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { characterLimit } from "../../tree/path-reader.ts";

const FORKS_MAX = 10_000;

/** The common beginning of a session and one of its direct or indirect forks. */
export interface ForkChain {
  /** How many of the fork's entries come from the session. */
  readonly shared: number;
  /** The sessions that wrote the fork's other entries, the fork itself first, each with the position of its first entry. */
  readonly writers: readonly { readonly header: SessionHeader; readonly from: number }[];
}

/**
 * Follows the chain of forks from a fork back to a session.
 *
 * @throws {LineageError} if the chain does not lead to that session, or if a fork on the way was deleted.
 */
export async function followForks(store: SessionStore, fork: SessionHead, sourceId: string): Promise<ForkChain> {
  const writers: { header: SessionHeader; from: number }[] = [];
  let { header } = fork;
  let shared = fork.version;
  for (let forks = 0; forks < FORKS_MAX && header.forkedFrom !== null; forks++) {
    shared = Math.min(shared, header.forkedFrom.version);
    writers.push({ header, from: shared });
    const { sessionId } = header.forkedFrom;
    if (sessionId === sourceId) return { shared, writers };
    const source = await store.head(sessionId);
    if (source === null) {
      throw new LineageError(
        fork.header.id,
        `Session ${fork.header.id} comes from ${sessionId}, which is deleted, so its fork position in ${sourceId} is unknown; undelete that one first.`,
      );
    }
    header = source.header;
  }
  throw new LineageError(
    fork.header.id,
    `Session ${fork.header.id} is not a fork of ${sourceId}, nor of one of its forks; merge a branch into a session that it comes from.`,
  );
}

/** The session that wrote a new entry of a fork. */
export function writerOf({ writers }: ForkChain, { seq }: Entry): SessionHeader {
  const writer = writers.find(({ from }) => seq >= from) ?? writers[0];
  return (writer as ForkChain["writers"][number]).header;
}

/**
 * The new nodes on a fork's path, oldest first. The cost is proportional to their number.
 *
 * @throws {SessionError} `TOO_LARGE` if they have more than `charactersMax` characters.
 */
export async function readNewEntries(
  store: SessionStore,
  fork: SessionHead,
  shared: number,
  charactersMax?: number,
): Promise<Entry[]> {
  const own = new Map<string, Entry>();
  const { id } = fork.header;
  const count = characterLimit(id, charactersMax);
  for await (const entry of store.read(id, { after: shared - 1, before: fork.version })) {
    count(entry);
    own.set(entry.id, entry);
  }
  const path: Entry[] = [];
  for (let entry = own.get(fork.leafId ?? ""); entry !== undefined; entry = own.get(entry.parentId ?? "")) {
    path.push(entry);
  }
  return path.reverse();
}
