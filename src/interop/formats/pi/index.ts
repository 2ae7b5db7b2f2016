import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { isUuid, uuidFrom } from "../foreign-id.ts";
import { firstObjects } from "../foreign-values.ts";
import { piFiles } from "./pi-files.ts";
import { isPiHeader, PiReader } from "./read-pi.ts";
import { writePi } from "./write-pi.ts";

/** The sessions of pi. */
export const pi: ForeignFormat = {
  ...piFiles,
  unit: "lines",
  detects: (start) => firstObjects(start, 1).some(isPiHeader),
  hasEdits: true,
  read: (sink) => new PiReader(sink),
  write: writePi,
  isSessionId: isUuid,
  sessionIdFrom: uuidFrom,
  handoff({ header, cwd, foreignId }) {
    const folder = `--${cwd.replace(/^[/\\]/, "").replaceAll(/[/\\:]/g, "-")}--`;
    const path = join(piFiles.home(), folder, `${header.createdAt.replaceAll(/[:.]/g, "-")}_${foreignId}.jsonl`);
    return { path, commands: [["pi", "--session", path]] };
  },
};
