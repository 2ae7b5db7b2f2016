import type { Client } from "skein/client";
import { useCallback, useState } from "react";
import { type Action, useAction } from "../../request/use-action.ts";
import { useClient } from "../../request/use-client.ts";
import { goTo } from "../../shell/route.ts";
import { announceChange } from "../session-signals.ts";

/** Imports files, with a sentence about the result. */
export interface Import extends Action<[files: readonly File[]]> {
  readonly found: string | null;
}

/** Imports sessions from files of Skein and of other programs; opens the session if it is only one. */
export function useImport(): Import {
  const client = useClient();
  const [found, setFound] = useState<string | null>(null);
  const action = useAction(
    useCallback(
      async (files: readonly File[]) => {
        setFound(null);
        const result = await importAll(client, files);
        announceChange();
        const [only] = result.sessions;
        if (result.sessions.length === 1 && only !== undefined)
          goTo({ page: "session", id: only, view: "talk", options: {} });
        setFound(sentenceOf(result));
      },
      [client],
    ),
  );
  return { ...action, found };
}

/** The result of an import. */
interface ImportResult {
  readonly sessions: string[];
  /** The number of sessions by program. */
  readonly programs: Map<string, number>;
  lost: number;
  /** The number of files without a session, with the reason for the first. */
  refused: number;
  reason: string | null;
}

/** Imports all files. A failure does not stop the others; the failure of a single file is thrown. */
async function importAll(client: Client, files: readonly File[]): Promise<ImportResult> {
  const result: ImportResult = { sessions: [], programs: new Map(), lost: 0, refused: 0, reason: null };
  for (const file of files) {
    try {
      const { header, found } = await client.sessions.importFile(file);
      result.sessions.push(header.id);
      if (found === undefined) continue;
      result.programs.set(found.format, (result.programs.get(found.format) ?? 0) + 1);
      result.lost += found.lost;
    } catch (error) {
      if (files.length === 1) throw error;
      result.refused++;
      result.reason ??= (error as Error).message;
    }
  }
  return result;
}

/** Null if one session of Skein was imported without problems. */
function sentenceOf({ sessions, programs, lost, refused, reason }: ImportResult): string | null {
  if (programs.size === 0 && refused === 0 && sessions.length === 1) return null;
  const from = [...programs].map(([program, count]) => `${count} of ${program}`).join(", ");
  const said = [
    `${sessions.length} ${sessions.length === 1 ? "session" : "sessions"} imported${from === "" ? "" : ` (${from})`}.`,
  ];
  if (lost > 0) said.push(`${lost} ${lost === 1 ? "line" : "lines"} could not be read.`);
  if (refused > 0) said.push(`${refused} ${refused === 1 ? "file was" : "files were"} refused: ${reason}`);
  return said.join(" ");
}
