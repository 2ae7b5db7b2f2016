import type { RunEvent } from "../../index.ts";
import { printable } from "../terminal.ts";

/** What whoever follows a run is told beside its answer; null for an event that says nothing beside it. */
export function asideOf(event: RunEvent): string | null {
  switch (event.type) {
    case "compaction":
      return `The older part of the context, ${event.tokensBefore} tokens, was summarised.`;
    case "model-retry":
      return `${printable(event.error.message, 200)} Trying again.`;
    case "leaf-moved":
      return "The session was moved elsewhere meanwhile; this run stays on its own branch.";
    case "events-dropped":
      return `${event.count} events came too fast to be shown.`;
    case "run-parked":
      return "The run waits for an answer and goes on after it; skein approvals lists what it asks.";
    default:
      return null;
  }
}
