import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { isUuid, uuidFrom } from "../foreign-id.ts";
import { firstObjects } from "../foreign-values.ts";
import { programHome } from "../program-home.ts";
import { OpenRathReader } from "./read-openrath.ts";
import { writeOpenRath } from "./write-openrath.ts";

/** The sessions of OpenRath. */
export const openrath: ForeignFormat = {
  name: "openrath",
  title: "OpenRath",
  unit: "lines",
  detects: (start) => firstObjects(start, 1).some((value) => value.record_type === "header" && "lineage_kind" in value),
  home,
  // A file that is still being written, or whose writer was killed, has the suffix `.__partial__`.
  isSessionFile: (path) => /\.jsonl(?:\.__partial__)?$/.test(path),
  read: (sink) => new OpenRathReader(sink),
  write: writeOpenRath,
  isSessionId: isUuid,
  sessionIdFrom: uuidFrom,
  // OpenRath is a library: no command resumes a session.
  handoff: ({ foreignId }) => ({ path: join(home(), `${foreignId}.jsonl`), commands: [] }),
};

function home(): string {
  return join(programHome("OPENRATH_HOME", ".openrath"), "sessions");
}
