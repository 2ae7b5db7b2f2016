import type { Client, SessionView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";

/** How many of the last entries are searched for turns of a group. */
const ENTRIES_READ = 60;

type Asked = Pick<SessionView, "header" | "messageCount" | "running">;

/** Whether a session has to do with a group; looks again when a run begins or ends. */
export function useHasGroup(session: Asked): boolean {
  const client = useClient();
  const { header, messageCount, running } = session;
  const revision = `${running?.runId} ${messageCount === 0}`;
  const { data } = useRevised(`group ${header.id}`, revision, (signal) => hasGroup(client, session, signal));
  return data === true;
}

/**
 * Whether several agents have answered lately, a group is running, or the session is empty and the server offers a
 * group that could answer in it.
 */
export async function hasGroup(
  client: Client,
  { header: { id }, messageCount, running }: Asked,
  signal: AbortSignal,
): Promise<boolean> {
  if (messageCount === 0) return (await client.catalogue({ signal })).groups.length > 0;
  const { items } = await client.sessions.path(id, { limit: ENTRIES_READ }, { signal });
  const agents = items.flatMap((entry) => (entry.type === "message" ? (entry.message.agent ?? []) : []));
  if (new Set(agents).size > 1) return true;
  return running !== null && (await client.runs.get(id, running.runId, { signal })).group !== null;
}
