import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { isUuid, uuidFrom } from "../foreign-id.ts";
import { firstObjects } from "../foreign-values.ts";
import { programHome } from "../program-home.ts";
import { isPiHeader, PiReader } from "./read-pi.ts";
import { writePi } from "./write-pi.ts";

/** The sessions of pi. */
export const pi: ForeignFormat = {
  name: "pi",
  title: "pi",
  unit: "lines",
  detects: (start) => firstObjects(start, 1).some(isPiHeader),
  home,
  isSessionFile: (path) => path.endsWith(".jsonl"),
  read: (sink) => new PiReader(sink),
  write: writePi,
  isSessionId: isUuid,
  sessionIdFrom: uuidFrom,
  handoff({ header, cwd, foreignId }) {
    const folder = `--${cwd.replace(/^[/\\]/, "").replaceAll(/[/\\:]/g, "-")}--`;
    const path = join(home(), folder, `${header.createdAt.replaceAll(/[:.]/g, "-")}_${foreignId}.jsonl`);
    return { path, commands: [["pi", "--session", path]] };
  },
};

function home(): string {
  return (
    programHome("PI_CODING_AGENT_SESSION_DIR") ?? join(programHome("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions")
  );
}
