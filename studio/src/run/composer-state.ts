import type { Catalogue, SessionView } from "skein/client";
import { MAY_NOT } from "../request/use-me.ts";
import type { Run } from "./use-run.ts";

/** The effect of sending a message now: it starts a run, is sent to the active run, or is refused with a reason. */
export type ComposerState =
  /** `note` is a hint about what to do first. */
  | { readonly can: "start"; readonly note: string | null }
  | { readonly can: "say" }
  | { readonly can: "nothing"; readonly reason: string };

/** Computes what sending a message does now. */
export function composerState(
  session: Pick<SessionView, "status" | "running" | "openRuns">,
  run: Pick<Run, "id">,
  catalogue: Catalogue | null,
  isGroupRun: boolean,
  mayRun: boolean,
): ComposerState {
  const nothing = (reason: string): ComposerState => ({ can: "nothing", reason });
  if (!mayRun) return nothing(MAY_NOT.run);
  if (session.status === "suspended") return nothing("This session is suspended. Resume it to continue.");
  if (session.status !== "active")
    return nothing(`This session is ${session.status}. Fork it to continue from a turn.`);
  if (run.id !== null) {
    return isGroupRun ? nothing("A group is working. You can send the next message when it is done.") : { can: "say" };
  }
  if (session.running !== null) return nothing("Another run has this session. You can continue when it is done.");
  if (catalogue !== null && catalogue.agents.length === 0 && catalogue.groups.length === 0) {
    return nothing("This server has no agent.");
  }
  const isParked = session.openRuns.some(({ state }) => state === "parked");
  return { can: "start", note: isParked ? "A question waits for your answer." : null };
}
