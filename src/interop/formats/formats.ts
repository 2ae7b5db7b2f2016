import { checkArgument } from "../../session/check-arguments.ts";
import { open } from "node:fs/promises";
import { SessionError, show } from "../../session/errors.ts";
import type { ForeignFormat } from "./foreign-format.ts";
import { claudeCode } from "./claude-code/index.ts";
import { codex } from "./codex/index.ts";
import { opencode } from "./opencode/index.ts";
import { openrath } from "./openrath/index.ts";
import { pi } from "./pi/index.ts";

/** All supported formats. */
export const FOREIGN_FORMATS: readonly ForeignFormat[] = [claudeCode, codex, opencode, openrath, pi];

const START_BYTES = 64 * 1024;

/** The format with that name. @throws {SessionError} `INVALID_OPTION` if there is none. */
export function foreignFormat(name: string): ForeignFormat {
  const format = FOREIGN_FORMATS.find((each) => each.name === name);
  if (format !== undefined) return format;
  const names = FOREIGN_FORMATS.map((each) => each.name).join(", ");
  throw new SessionError("INVALID_OPTION", `${show(name)} is not a format of sessions; choose one of ${names}.`);
}

/** @throws {SessionError} `INVALID_OPTION`, with the name of the call, if the value is not a format. */
export function checkIsFormat(format: unknown, call: string): asserts format is ForeignFormat {
  checkArgument(
    FOREIGN_FORMATS.includes(format as ForeignFormat),
    format,
    call,
    'a format, such as foreignFormat("pi")',
  );
}

/**
 * Detects the format of a file from its content; null if it is unknown.
 *
 * @throws {SessionError} `INVALID_OPTION` when the file cannot be read.
 */
export async function detectFormat(path: string): Promise<ForeignFormat | null> {
  checkArgument(typeof path === "string", path, "detectFormat", "a path");
  const file = await open(path, "r").catch((cause: unknown) => {
    throw new SessionError("INVALID_OPTION", `${show(path)} cannot be read; check the path.`, { cause });
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(START_BYTES), 0, START_BYTES, 0);
    return formatOfText(buffer.toString("utf8", 0, bytesRead));
  } finally {
    await file.close();
  }
}

/** Detects the format of a file from its first 64 KiB or less; null if it is unknown. */
export function formatOfText(start: string): ForeignFormat | null {
  checkArgument(typeof start === "string", start, "formatOfText", "the beginning of a file, as a text");
  const text = start.startsWith("\ufeff") ? start.slice(1) : start;
  return FOREIGN_FORMATS.find((format) => format.detects(text)) ?? null;
}
