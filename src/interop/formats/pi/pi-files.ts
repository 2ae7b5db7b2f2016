import { join } from "node:path";
import type { ProgramFiles } from "../foreign-format.ts";
import { programHome } from "../program-home.ts";

/** Where pi keeps its sessions. */
export const piFiles: ProgramFiles = {
  name: "pi",
  title: "pi",
  home: () =>
    programHome("PI_CODING_AGENT_SESSION_DIR") ?? join(programHome("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions"),
  isSessionFile: (path) => path.endsWith(".jsonl"),
};
