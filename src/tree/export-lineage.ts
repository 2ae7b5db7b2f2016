import { checkPath } from "../stores/complete/valid-arguments.ts";
import { checkArgument, checkOptionsOf, isObject, type KeysOf } from "../session/check-arguments.ts";
import { randomUUID } from "node:crypto";
import { rename, unlink } from "node:fs/promises";
import { resolve } from "node:path";
import { writePrivateFile } from "../internal/private-file.ts";
import { LineageError, SessionError, show } from "../session/errors.ts";
import { type ExportableSession, toJsonl } from "../session/lineage/lineage-export.ts";
import type { LineageJournal } from "../session/lineage/lineage-scope.ts";
import { makeParent } from "../stores/named-path.ts";
import { type SessionRegistry, sessionRegistry } from "../session/value/session-registry.ts";

/** How the sessions of a journal are found. */
export interface ExportJournalOptions {
  /** Leaves out ids that the registry does not know (default), or refuses them. */
  readonly skipUnknown?: boolean;
  /** Where to look the ids up (default: the registry of the process). */
  readonly registry?: SessionRegistry;
}

/**
 * Writes one line of JSON for each session; a reader finds the old file or the whole new one.
 *
 * @throws {SessionError} `INVALID_OPTION` for a path in a directory that is missing, `STORE_FAILED` when the file cannot be written; it is as it was.
 */
export async function exportJsonl(sessions: Iterable<ExportableSession>, path: string): Promise<void> {
  const text = toJsonl(sessions);
  checkPath(path, "path");
  const temporary = `${path}.${randomUUID()}.tmp`;
  await makeParent(resolve(path), { what: "the export" });
  try {
    await writePrivateFile(temporary, text, { flush: true });
    await rename(temporary, path);
  } catch (cause) {
    await unlink(temporary).catch(() => {});
    throw new SessionError("STORE_FAILED", `The lineage could not be written to ${show(path)}, which is as it was.`, {
      cause,
    });
  }
}

/**
 * Writes one line of JSON for each session that a journal names, in the order in which they were made.
 *
 * @throws {LineageError} with `skipUnknown: false`, when the registry does not know one of them; nothing is written.
 */
export async function exportJournalJsonl(
  journal: LineageJournal,
  path: string,
  options: ExportJournalOptions = {},
): Promise<void> {
  checkArgument(
    isObject(journal) && Array.isArray(journal.visitOrder),
    journal,
    "exportJournalJsonl",
    "a journal of trackLineage",
  );
  checkOptionsOf(
    options,
    { skipUnknown: true, registry: true } satisfies KeysOf<ExportJournalOptions>,
    "exportJournalJsonl",
  );
  const { skipUnknown = true, registry = sessionRegistry } = options;
  const sessions: ExportableSession[] = [];
  for (const id of journal.visitOrder) {
    const session = registry.get(id);
    if (session !== undefined) sessions.push(session);
    else if (!skipUnknown) {
      throw new LineageError(id, `The registry does not know session ${show(id)}; register it, or skip unknown ones.`);
    }
  }
  await exportJsonl(sessions, path);
}
