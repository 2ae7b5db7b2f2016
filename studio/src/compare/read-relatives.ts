import { type Client, ClientError, type ListedSession, type SessionView } from "skein/client";

/** The sessions that a session is most likely compared with. */
export interface Relatives {
  readonly forks: readonly ListedSession[];
  /** The session that it was forked from; null where there is none, or none that may be seen. */
  readonly parent: SessionView | null;
}

/** As many forks as a list to choose from can hold. */
const FORKS_MAX = 100;
const CHAIN_MAX = 50;

/** Reads the forks of a session and where it came from. */
export async function readRelatives(client: Client, session: SessionView, signal: AbortSignal): Promise<Relatives> {
  const parentId = session.header.forkedFrom?.sessionId ?? null;
  const [{ items: forks }, parent] = await Promise.all([
    client.sessions.forks(session.header.id, { limit: FORKS_MAX }, { signal }),
    parentId === null ? null : getIfThere(client, parentId, signal),
  ]);
  return { forks, parent };
}

/** Whether a session is a fork of another, or a fork of one of its forks. */
export async function isForkOf(
  client: Client,
  fork: ListedSession,
  sourceId: string,
  signal: AbortSignal,
): Promise<boolean> {
  let from = fork.header.forkedFrom;
  for (let steps = 0; steps < CHAIN_MAX && from !== null; steps++) {
    if (from.sessionId === sourceId) return true;
    from = (await getIfThere(client, from.sessionId, signal))?.header.forkedFrom ?? null;
  }
  return false;
}

/** What the person is shown for a session. */
export function sessionTitle(session: ListedSession): string {
  const { branchName } = session.header.forkedFrom ?? {};
  const name = session.name ?? branchName ?? session.firstMessage ?? "New session";
  return branchName !== undefined && session.name !== null && session.name !== branchName
    ? `${session.name} (${branchName})`
    : name;
}

async function getIfThere(client: Client, id: string, signal: AbortSignal): Promise<SessionView | null> {
  try {
    return await client.sessions.get(id, { signal });
  } catch (error) {
    if (error instanceof ClientError && error.status !== null && error.status < 500) return null;
    throw error;
  }
}
