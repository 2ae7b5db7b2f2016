import { createContext, useContext } from "react";
import type { FleetView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { titleOf } from "../sessions/session-status.ts";

/** How many sessions of each state are asked for; the others are shown by their ids. */
const SESSIONS_MAX = 100;
const STATES = ["running", "requested", "interrupted"] as const;

type Titles = ReadonlyMap<string, string>;

const NONE: Titles = new Map();

/** The titles of the sessions in the fleet, by id. */
export const FleetTitlesContext = createContext<Titles>(NONE);

/** The title of a session in the fleet; null if it has none, or while it is unknown. */
export function useFleetTitle(sessionId: string): string | null {
  return useContext(FleetTitlesContext).get(sessionId) ?? null;
}

/** Loads the titles of the sessions with open runs, again whenever the fleet shows other sessions. */
export function useReadFleetTitles(fleet: FleetView | null): Titles {
  const client = useClient();
  const shown = fleet === null ? [] : [...fleet.workers.flatMap(({ runs }) => runs), ...waitingIn(fleet)];
  const ids = [...new Set(shown.map(({ sessionId }) => sessionId))].sort();
  const { data } = useRevised("fleet titles", ids.join(" "), async (signal): Promise<Titles> => {
    if (ids.length === 0) return NONE;
    const pages = await Promise.all(
      STATES.map((runs) => client.sessions.list({ runs, limit: SESSIONS_MAX }, { signal })),
    );
    const named = pages
      .flatMap(({ items }) => items)
      .filter(({ name, firstMessage }) => (name ?? firstMessage) !== null);
    return new Map(named.map((session) => [session.header.id, titleOf(session)]));
  });
  return data ?? NONE;
}

function waitingIn({ requested, interrupted }: FleetView): readonly { readonly sessionId: string }[] {
  return [...requested.items, ...interrupted.items];
}
