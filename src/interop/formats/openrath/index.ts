import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { isUuid, uuidFrom } from "../foreign-id.ts";
import { firstObjects } from "../foreign-values.ts";
import { openrathFiles } from "./openrath-files.ts";
import { OpenRathReader } from "./read-openrath.ts";
import { writeOpenRath } from "./write-openrath.ts";

/** The sessions of OpenRath. */
export const openrath: ForeignFormat = {
  ...openrathFiles,
  unit: "lines",
  detects: (start) => firstObjects(start, 1).some((value) => value.record_type === "header" && "lineage_kind" in value),
  read: (sink) => new OpenRathReader(sink),
  write: writeOpenRath,
  isSessionId: isUuid,
  sessionIdFrom: uuidFrom,
  // OpenRath is a library: no command resumes a session.
  handoff: ({ foreignId }) => ({ path: join(openrathFiles.home(), `${foreignId}.jsonl`), commands: [] }),
};
