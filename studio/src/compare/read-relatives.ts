import { type Client, ClientError, type ListedSession, type SessionView } from "skein/client";

/** The sessions to offer for a comparison. */
export interface Relatives {
  readonly forks: readonly ListedSession[];
  /** The session that it was forked from; null without one, or if the user may not see it. */
  readonly parent: SessionView | null;
}

/** The maximum number of forks in the list. */
const FORKS_MAX = 100;
const CHAIN_MAX = 50;

/** Loads the forks and the parent of a session. */
export async function readRelatives(client: Client, session: SessionView, signal: AbortSignal): Promise<Relatives> {
  const parentId = session.header.forkedFrom?.sessionId ?? null;
  const [{ items: forks }, parent] = await Promise.all([
    client.sessions.forks(session.header.id, { limit: FORKS_MAX }, { signal }),
    parentId === null ? null : getIfThere(client, parentId, signal),
  ]);
  return { forks, parent };
}

/** Whether a session is a fork of another, directly or through other forks. */
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

/** The title of a session. */
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
