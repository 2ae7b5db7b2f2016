import type { SessionView } from "../shell/route.ts";

/** The names of the views of a session. */
export const VIEW_NAMES: Readonly<Record<SessionView, string>> = {
  talk: "Transcript",
  context: "What the model sees",
  compare: "Compare and merge",
  checkpoints: "Checkpoints",
  lineage: "Lineage",
  group: "Group",
};
