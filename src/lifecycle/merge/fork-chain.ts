import type { Entry } from "../../session/log/entry.ts";
import { LineageError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { characterLimit } from "../../tree/path-reader.ts";

const FORKS_MAX = 10_000;

/** What a session and one of its forks, or a fork of a fork, have in common. */
export interface ForkChain {
  /** How many of the fork's entries are the session's own. */
  readonly shared: number;
  /** The sessions that wrote what the fork has more, the fork itself first, each with the position of its first entry. */
  readonly writers: readonly { readonly header: SessionHeader; readonly from: number }[];
}

/**
 * Follows a fork back to a session that it comes from.
 *
 * @throws {LineageError} when it does not come from that session, or when a fork on the way was deleted.
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
        `Session ${fork.header.id} comes from ${sessionId}, which is not there any more, so where it left ${sourceId} cannot be told; bring that one back first.`,
      );
    }
    header = source.header;
  }
  throw new LineageError(
    fork.header.id,
    `Session ${fork.header.id} is not a fork of ${sourceId}, nor of one of its forks; merge a branch into a session that it comes from.`,
  );
}

/** The session that wrote an entry which the fork has more than its source. */
export function writerOf({ writers }: ForkChain, { seq }: Entry): SessionHeader {
  const writer = writers.find(({ from }) => seq >= from) ?? writers[0];
  return (writer as ForkChain["writers"][number]).header;
}

/**
 * The nodes on a fork's path that it has more than its source, oldest first. Costs what the fork has more.
 *
 * @throws {SessionError} `TOO_LARGE` when that takes more than so many characters.
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
