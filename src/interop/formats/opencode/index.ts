import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { opencodeFiles } from "./opencode-files.ts";
import { isOpencodeSessionId, opencodeSessionId } from "./opencode-id.ts";
import { OpencodeReader } from "./read-opencode.ts";
import { writeOpencode } from "./write-opencode.ts";

/** The sessions of opencode in its export format; opencode itself keeps sessions in a database. */
export const opencode: ForeignFormat = {
  ...opencodeFiles,
  unit: "document",
  detects: (start) => /^\s*\{\s*"info"\s*:\s*\{\s*"(?:id"\s*:\s*"ses_|slug")/.test(start),
  read: (sink) => new OpencodeReader(sink),
  write: writeOpencode,
  isSessionId: isOpencodeSessionId,
  sessionIdFrom: opencodeSessionId,
  handoff({ foreignId }) {
    const path = join(opencodeFiles.home(), `${foreignId}.json`);
    const commands = [
      ["opencode", "import", path],
      ["opencode", "--session", foreignId],
    ];
    return { path, commands };
  },
};
