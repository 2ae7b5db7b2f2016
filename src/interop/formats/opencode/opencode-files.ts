import { join } from "node:path";
import type { ProgramFiles } from "../foreign-format.ts";
import { programHome } from "../program-home.ts";

/** Where opencode keeps its database, and where its exports are written and read. */
export const opencodeFiles: ProgramFiles = {
  name: "opencode",
  title: "opencode",
  home: () => join(directory(), "exports"),
  isSessionFile: (path) => path.endsWith(".json"),
  database: {
    path: () => join(directory(), "opencode.db"),
    exportCommand: "opencode export <session> > talk.json && skein import talk.json",
  },
};

function directory(): string {
  return join(programHome("XDG_DATA_HOME", ".local", "share"), "opencode");
}
