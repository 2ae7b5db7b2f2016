import { open } from "node:fs/promises";
import { SessionError, show } from "../../session/errors.ts";
import type { ForeignFormat } from "./foreign-format.ts";
import { claudeCode } from "./claude-code/index.ts";
import { codex } from "./codex/index.ts";
import { opencode } from "./opencode/index.ts";
import { openrath } from "./openrath/index.ts";
import { pi } from "./pi/index.ts";

/** Every format that sessions can be read from and written in. */
export const FOREIGN_FORMATS: readonly ForeignFormat[] = [claudeCode, codex, opencode, openrath, pi];

const START_BYTES = 64 * 1024;

/** The format of that name. @throws {SessionError} `INVALID_OPTION` where there is none. */
export function foreignFormat(name: string): ForeignFormat {
  const format = FOREIGN_FORMATS.find((each) => each.name === name);
  if (format !== undefined) return format;
  const names = FOREIGN_FORMATS.map((each) => each.name).join(", ");
  throw new SessionError("INVALID_OPTION", `${show(name)} is not a format of sessions; choose one of ${names}.`);
}

/** The format of a file, by what stands in it; null where it is none of those that are known. */
export async function detectFormat(path: string): Promise<ForeignFormat | null> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(START_BYTES), 0, START_BYTES, 0);
    return formatOfText(buffer.toString("utf8", 0, bytesRead));
  } finally {
    await file.close();
  }
}

/** The format of a text that begins like this. */
export function formatOfText(start: string): ForeignFormat | null {
  const text = start.startsWith("\ufeff") ? start.slice(1) : start;
  return FOREIGN_FORMATS.find((format) => format.detects(text)) ?? null;
}
