import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { isUuid, uuidFrom } from "../foreign-id.ts";
import { codexFiles } from "./codex-files.ts";
import { CodexReader } from "./read-codex.ts";
import { writeCodex } from "./write-codex.ts";

/** The sessions of Codex. */
export const codex: ForeignFormat = {
  ...codexFiles,
  unit: "lines",
  // Not parsed as JSON: the first line holds the instructions to the model and may be longer than the text given here.
  detects: (start) =>
    /^\s*\{(?:[^{}]*"type"\s*:\s*"session_meta"|\s*"id"\s*:\s*"[^"]*"\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"instructions")/.test(
      start,
    ),
  read: (sink) => new CodexReader(sink),
  write: writeCodex,
  isSessionId: isUuid,
  sessionIdFrom: uuidFrom,
  handoff({ header, foreignId }) {
    const [day = "", time = ""] = header.createdAt.slice(0, 19).split("T");
    const name = `rollout-${day}T${time.replaceAll(":", "-")}-${foreignId}.jsonl`;
    return { path: join(codexFiles.home(), ...day.split("-"), name), commands: [["codex", "resume", "--", foreignId]] };
  },
};
