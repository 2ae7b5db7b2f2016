import { basename, join } from "node:path";
import type { ProgramFiles } from "../foreign-format.ts";
import { programHome } from "../program-home.ts";

/** Where Codex keeps its sessions. */
export const codexFiles: ProgramFiles = {
  name: "codex",
  title: "Codex",
  home: () => join(programHome("CODEX_HOME", ".codex"), "sessions"),
  isSessionFile: (path) => /^rollout-.*\.jsonl$/.test(basename(path)),
};
