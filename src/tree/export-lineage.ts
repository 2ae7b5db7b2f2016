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

/** Options of `exportJournalJsonl`. */
export interface ExportJournalOptions {
  /** Skip ids that the registry does not have (default), or throw. */
  readonly skipUnknown?: boolean;
  /** The registry for looking up ids (default: the registry of the process). */
  readonly registry?: SessionRegistry;
}

/**
 * Writes one line of JSON for each session. The file is replaced atomically.
 *
 * @throws {SessionError} `INVALID_OPTION` for a missing directory, `STORE_FAILED` if the file cannot be written; then it is
 * unchanged.
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
    throw new SessionError("STORE_FAILED", `The lineage could not be written to ${show(path)}, which is unchanged.`, {
      cause,
    });
  }
}

/**
 * Writes one line of JSON for each session in a journal, in the order in which they were created.
 *
 * @throws {LineageError} with `skipUnknown: false`, if the registry does not have one of them; nothing is written.
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
      throw new LineageError(id, `The registry does not have session ${show(id)}; register it, or skip unknown ones.`);
    }
  }
  await exportJsonl(sessions, path);
}
