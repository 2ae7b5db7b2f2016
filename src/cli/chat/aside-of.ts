import type { RunEvent } from "../../index.ts";
import { printable } from "../terminal.ts";

/** The notice that is shown beside an answer for an event of a run; null for an event without one. */
export function asideOf(event: RunEvent): string | null {
  switch (event.type) {
    case "compaction":
      return `The older part of the context, ${event.tokensBefore} tokens, was replaced by a summary.`;
    case "model-retry":
      return `${printable(event.error.message, 200)} Retrying.`;
    case "leaf-moved":
      return "The session moved to another branch meanwhile; this run continues on its own branch.";
    case "events-dropped":
      return `${event.count} events were dropped: they came faster than they could be shown.`;
    case "run-parked":
      return "The run is parked until its questions are answered; skein approvals lists them.";
    default:
      return null;
  }
}
