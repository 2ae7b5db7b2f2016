import { join } from "node:path";
import { SessionError, type SessionStore } from "../../../index.ts";
import { ImportCache, importCacheName } from "../../../interop/formats/index.ts";
import { ProgramImports, programsIn } from "../../../interop/formats/program-imports.ts";
import { skeinHome } from "../../../tree/home.ts";
import { type CommandContext, textOption } from "../../command.ts";
import { LOCAL_USER } from "../../../lifecycle/access.ts";

/** The option that imports sessions of other programs as they grow. */
export const FOLLOW_OPTION = {
  value: "PROGRAMS",
  what: "import your sessions of these programs, and keep importing what they add, as in claude-code,codex,pi; all for every program that keeps them in files",
} as const;

/**
 * The imports of the programs that `--follow` names, which `begin` starts, and of those that a page of the server begins later. A failed
 * import is printed, and the others continue.
 *
 * @throws {SessionError} `INVALID_OPTION` for an unknown program, or together with `--token-file`.
 */
export function programImports(
  context: CommandContext,
  store: SessionStore,
): { readonly imports: ProgramImports; begin(): void } {
  const { values, signal, storeUrl, fail } = context;
  const given = textOption(values, "follow");
  if (given !== undefined && textOption(values, "token-file") !== undefined) {
    const message = "--follow imports your own sessions, and --token-file serves other users; leave out one of them.";
    throw new SessionError("INVALID_OPTION", message);
  }
  const names = given === undefined ? [] : programsIn(given);
  const imports = new ProgramImports({
    ...{ store, storeUrl, userId: LOCAL_USER, signal },
    openCache: () => ImportCache.open(join(skeinHome(), "imports", importCacheName(storeUrl, LOCAL_USER))),
    onFailure(error, path) {
      if (!signal.aborted) fail(`${path} could not be imported: ${(error as Error).message}`);
    },
  });
  return { imports, begin: () => imports.begin(names) };
}
