import type { SessionView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";

/** How many of the last entries are searched for turns of a group. */
const ENTRIES_READ = 60;

/**
 * Whether a session has to do with a group: the server offers one that could answer here, or several agents have
 * answered lately.
 */
export function useHasGroup({ header }: SessionView): boolean {
  const client = useClient();
  const { data } = useRequest(`group ${header.id}`, async (signal) => {
    const { groups } = await client.catalogue({ signal });
    if (groups.length > 0) return true;
    const { items } = await client.sessions.path(header.id, { limit: ENTRIES_READ }, { signal });
    const agents = items.flatMap((entry) => (entry.type === "message" ? (entry.message.agent ?? []) : []));
    return new Set(agents).size > 1;
  });
  return data === true;
}
