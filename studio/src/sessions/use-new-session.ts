import { useCallback } from "react";
import { type Action, useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { goTo } from "../shell/route.ts";
import { announceChange } from "./session-signals.ts";

/** Creates a session and opens it; its first message names it. */
export function useNewSession(): Action<[]> {
  const client = useClient();
  const create = useCallback(async () => {
    const { header } = await client.sessions.create();
    announceChange();
    goTo({ page: "session", id: header.id, view: "talk", options: {} });
  }, [client]);
  return useAction(create);
}
