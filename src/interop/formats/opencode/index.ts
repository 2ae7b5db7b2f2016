import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { programHome } from "../program-home.ts";
import { isOpencodeSessionId, opencodeSessionId } from "./opencode-id.ts";
import { OpencodeReader } from "./read-opencode.ts";
import { writeOpencode } from "./write-opencode.ts";

/** The sessions of opencode in its export format; opencode itself keeps sessions in a database. */
export const opencode: ForeignFormat = {
  name: "opencode",
  title: "opencode",
  unit: "document",
  detects: (start) => /^\s*\{\s*"info"\s*:\s*\{\s*"(?:id"\s*:\s*"ses_|slug")/.test(start),
  home,
  isSessionFile: (path) => path.endsWith(".json"),
  read: (sink) => new OpencodeReader(sink),
  write: writeOpencode,
  isSessionId: isOpencodeSessionId,
  sessionIdFrom: opencodeSessionId,
  handoff({ foreignId }) {
    const path = join(home(), `${foreignId}.json`);
    const commands = [
      ["opencode", "import", path],
      ["opencode", "--session", foreignId],
    ];
    return { path, commands };
  },
};

/** The directory for exports that opencode is to import. */
function home(): string {
  return join(programHome("XDG_DATA_HOME", ".local", "share"), "opencode", "exports");
}
