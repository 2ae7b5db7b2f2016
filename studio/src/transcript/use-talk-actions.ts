import { useMemo, useRef } from "react";
import { useClient } from "../request/use-client.ts";
import type { RunChoice } from "../run/run-choice.ts";
import type { Run } from "../run/use-run.ts";
import { goTo } from "../shell/route.ts";
import type { TalkActions } from "./talk-actions.ts";

/** Creates the actions of a session's turns. They stay the same objects, so that rows need not be rendered again. */
export function useMakeTalkActions(
  sessionId: string,
  now: {
    readonly run: Run;
    readonly choice: RunChoice;
    readonly leafId: string | null;
    readonly reload: () => void;
  },
): TalkActions {
  const client = useClient();
  const latest = useRef(now);
  latest.current = now;
  return useMemo(
    () => ({
      sessionId,
      branch: async (entryId) => {
        await client.sessions.moveLeaf(sessionId, { entryId });
        latest.current.reload();
      },
      select: async (entryId) => {
        await client.sessions.moveLeaf(sessionId, { entryId, latest: true });
        latest.current.reload();
        // So that the turn stays in view.
        goTo({ page: "session", id: sessionId, view: "talk", options: { entry: entryId } });
      },
      replaceTurn: async (parentId, input) => {
        await client.sessions.moveLeaf(sessionId, { entryId: parentId });
        await latest.current.run.start(input, latest.current.choice);
        latest.current.reload();
      },
      label: async (entryId, label) => {
        await client.sessions.label(sessionId, entryId, label);
        latest.current.reload();
      },
      fork: async (entryId, branchName) => {
        // At the leaf, the whole session is forked: one that ends in the middle of a run would count as interrupted.
        const at = entryId === latest.current.leafId ? {} : { at: entryId };
        const { header } = await client.sessions.fork(sessionId, { branchName, ...at });
        goTo({ page: "session", id: header.id, view: "talk", options: {} });
      },
    }),
    [client, sessionId],
  );
}
