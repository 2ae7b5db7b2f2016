import type { Catalogue, SessionView } from "skein/client";
import { MAY_NOT } from "../request/use-me.ts";
import type { Run } from "./use-run.ts";

/** What sending does now: start a run, have a say in the one that goes on, or nothing, for a reason. */
export type ComposerState =
  /** `note` says what is better done first. */
  | { readonly can: "start"; readonly note: string | null }
  | { readonly can: "say" }
  | { readonly can: "nothing"; readonly reason: string };

/** What sending does now. */
export function composerState(
  session: Pick<SessionView, "status" | "running" | "openRuns">,
  run: Pick<Run, "id">,
  catalogue: Catalogue | null,
  isGroupRun: boolean,
  mayRun: boolean,
): ComposerState {
  const nothing = (reason: string): ComposerState => ({ can: "nothing", reason });
  if (!mayRun) return nothing(MAY_NOT.run);
  if (session.status === "suspended") return nothing("This session is suspended. Resume it to go on.");
  if (session.status !== "active") return nothing(`This session is ${session.status}. Fork it to go on from a turn.`);
  if (run.id !== null) {
    return isGroupRun ? nothing("A group is at work. It takes the next message when it is done.") : { can: "say" };
  }
  if (session.running !== null) return nothing("A run has this session. You can go on when it is done.");
  if (catalogue !== null && catalogue.agents.length === 0 && catalogue.groups.length === 0) {
    return nothing("This server offers no agent that could answer.");
  }
  const isParked = session.openRuns.some(({ state }) => state === "parked");
  return { can: "start", note: isParked ? "A question waits for its answer." : null };
}
