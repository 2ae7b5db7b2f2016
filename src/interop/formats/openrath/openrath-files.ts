import { join } from "node:path";
import type { ProgramFiles } from "../foreign-format.ts";
import { programHome } from "../program-home.ts";

/** Where OpenRath keeps its sessions. */
export const openrathFiles: ProgramFiles = {
  name: "openrath",
  title: "OpenRath",
  home: () => join(programHome("OPENRATH_HOME", ".openrath"), "sessions"),
  // A file that is still being written, or whose writer was killed, has the suffix `.__partial__`.
  isSessionFile: (path) => /\.jsonl(?:\.__partial__)?$/.test(path),
};
