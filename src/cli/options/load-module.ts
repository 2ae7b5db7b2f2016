import { existsSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { hideFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";

/**
 * What a module of the user's exports; `what` says in a refusal what it was to export.
 *
 * Its code runs in this process with all that the user may do. So tools neither see it nor change it: what a model wrote there
 * would run when the program is next started.
 *
 * @throws {SessionError} `INVALID_OPTION` when there is none, or it cannot be loaded.
 */
export async function loadModule(path: string, what: string): Promise<Readonly<Record<string, unknown>>> {
  const file = resolve(path);
  hideFromSandboxes(file);
  if (!existsSync(file)) {
    throw new SessionError("INVALID_OPTION", `There is no file ${show(path)}; name a module that exports ${what}.`);
  }
  try {
    return (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw new SessionError("INVALID_OPTION", `${show(path)} cannot be loaded: ${reasonOf(file, cause)}`, { cause });
  }
}

function reasonOf(file: string, cause: unknown): string {
  const { code, message } = (cause instanceof Error ? cause : { message: String(cause) }) as NodeJS.ErrnoException;
  if (code !== "ERR_UNKNOWN_FILE_EXTENSION") return message;
  const ending = extname(file);
  if (!ending.endsWith("ts")) return `modules end with .mjs or .js, not with ${show(ending)}.`;
  return `Node ${process.version} cannot load TypeScript; use Node 22.18 or later, or write it as .mjs.`;
}
