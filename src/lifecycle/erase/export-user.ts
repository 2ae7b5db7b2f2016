import { type ArchivedFile, tarOf } from "../../internal/tar.ts";
import type { Entry } from "../../session/log/entry.ts";
import { checkName } from "../../session/id.ts";
import type { Checkpoint, SessionStore } from "../../session/store.ts";
import { authoredBy, type FoundSession, findSessions, readFound } from "./found-session.ts";

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
