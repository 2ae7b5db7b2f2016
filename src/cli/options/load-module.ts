import { existsSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { hideFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";

/**
 * Imports a module of the user; `what` is what it should export, for error messages.
 *
 * Its code runs in this process with all rights of the user. So the file is hidden from the sandboxes of tools: a model
 * must not write code there that would run at the next start.
 *
 * @throws {SessionError} `INVALID_OPTION` if the file is missing or cannot be loaded.
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
