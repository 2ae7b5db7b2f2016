import { join } from "node:path";
import { SessionError, type SessionStore } from "../../../index.ts";
import {
  followFiles,
  foreignFormat,
  ImportCache,
  importFiles,
  importCacheName,
} from "../../../interop/formats/index.ts";
import { skeinHome } from "../../../tree/home.ts";
import { type CommandContext, textOption } from "../../command.ts";
import { LOCAL_USER } from "../../../lifecycle/access.ts";

/** The option that imports sessions of other programs as they grow. */
export const FOLLOW_OPTION = {
  value: "PROGRAMS",
  what: "import your sessions of these programs, and keep importing what they add, as in claude-code,codex,pi",
} as const;

/**
 * Imports the sessions of the programs that `--follow` names, then what is added to them, until the command is stopped.
 * A failed import is printed, and the others continue.
 *
 * @throws {SessionError} `INVALID_OPTION`, synchronously, for an unknown program, or together with `--token-file`.
 */
export function followPrograms(context: CommandContext, store: SessionStore): Promise<void> {
  const { values, signal, storeUrl, fail } = context;
  const names = textOption(values, "follow")?.split(",") ?? [];
  if (names.length > 0 && textOption(values, "token-file") !== undefined) {
    const message = "--follow imports your own sessions, and --token-file serves other users; leave out one of them.";
    throw new SessionError("INVALID_OPTION", message);
  }
  const places = names.map((name) => ({ format: foreignFormat(name.trim()) }));
  const target = { store, userId: LOCAL_USER };
  const onFailure = (error: unknown, path: string) => {
    if (!signal.aborted) fail(`${path} could not be imported: ${(error as Error).message}`);
  };
  return importThenFollow();

  async function importThenFollow(): Promise<void> {
    const cache = await ImportCache.open(join(skeinHome(), "imports", importCacheName(storeUrl, LOCAL_USER)));
    for (const { format } of places) {
      try {
        for await (const _step of importFiles(target, { format, cache, storeUrl, signal })) if (signal.aborted) return;
      } catch (error) {
        onFailure(error, format.home());
      }
    }
    if (places.length === 0 || signal.aborted) return;
    await cache.save().catch((error: unknown) => onFailure(error, "The list of what was imported"));
    await followFiles(target, places, { signal, onFailure });
  }
}
