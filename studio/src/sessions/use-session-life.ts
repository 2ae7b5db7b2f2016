import { useCallback } from "react";
import type { ListedSession } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { goTo } from "../shell/route.ts";
import { titleOf } from "./session-status.ts";
import { announceChange, offerUndo } from "./session-signals.ts";

/** The lifecycle actions on a session, and the error of the last one. */
export interface SessionLife {
  readonly busy: boolean;
  readonly error: Error | null;
  readonly clear: () => void;
  readonly suspend: () => void;
  readonly resume: () => void;
  readonly close: (reason: string) => void;
  /** Deletes the session, leaves its page, and offers to restore it. */
  readonly remove: () => void;
}

/** Suspends, resumes, closes and deletes a session. */
export function useSessionLife(session: ListedSession, onChange: () => void): SessionLife {
  const client = useClient();
  const { id } = session.header;
  const { busy, error, clear, run } = useAction(
    useCallback(async (work: () => Promise<unknown>) => {
      await work();
      announceChange();
    }, []),
  );
  const change = async (work: () => Promise<unknown>): Promise<void> => {
    if (await run(work)) onChange();
  };
  const remove = async (): Promise<void> => {
    const title = titleOf(session);
    if (!(await run(() => client.sessions.delete(id)))) return;
    goTo({ page: "sessions" });
    offerUndo({ text: `Deleted “${title}”.`, undo: () => client.sessions.undelete(id) });
  };
  return {
    busy,
    error,
    clear,
    suspend: () => void change(() => client.sessions.suspend(id)),
    resume: () => void change(() => client.sessions.resume(id)),
    close: (reason) => void change(() => client.sessions.close(id, reason === "" ? {} : { reason })),
    remove: () => void remove(),
  };
}
