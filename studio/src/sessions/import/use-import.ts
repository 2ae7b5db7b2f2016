import type { Client } from "skein/client";
import { useCallback, useState } from "react";
import { type Action, useAction } from "../../request/use-action.ts";
import { useClient } from "../../request/use-client.ts";
import { goTo } from "../../shell/route.ts";
import { announceChange } from "../session-signals.ts";

/** Takes in files, and says what was found in them. */
export interface Import extends Action<[files: readonly File[]]> {
  readonly found: string | null;
}

/** Takes in sessions from files of Skein and of other programs; where it was one session, goes there. */
export function useImport(): Import {
  const client = useClient();
  const [found, setFound] = useState<string | null>(null);
  const action = useAction(
    useCallback(
      async (files: readonly File[]) => {
        setFound(null);
        const taken = await takeAll(client, files);
        announceChange();
        const [only] = taken.sessions;
        if (taken.sessions.length === 1 && only !== undefined)
          goTo({ page: "session", id: only, view: "talk", options: {} });
        setFound(sentenceOf(taken));
      },
      [client],
    ),
  );
  return { ...action, found };
}

/** What became of files. */
interface Taken {
  readonly sessions: string[];
  /** How many sessions came from each program. */
  readonly programs: Map<string, number>;
  lost: number;
  /** Files that are no session, with the reason of the first. */
  refused: number;
  reason: string | null;
}

/** One file that is refused does not keep the others out; where there is only one, its refusal is the answer. */
async function takeAll(client: Client, files: readonly File[]): Promise<Taken> {
  const taken: Taken = { sessions: [], programs: new Map(), lost: 0, refused: 0, reason: null };
  for (const file of files) {
    try {
      const { header, found } = await client.sessions.importFile(file);
      taken.sessions.push(header.id);
      if (found === undefined) continue;
      taken.programs.set(found.format, (taken.programs.get(found.format) ?? 0) + 1);
      taken.lost += found.lost;
    } catch (error) {
      if (files.length === 1) throw error;
      taken.refused++;
      taken.reason ??= (error as Error).message;
    }
  }
  return taken;
}

/** Null where a session of Skein's own came in and there is nothing to say about it. */
function sentenceOf({ sessions, programs, lost, refused, reason }: Taken): string | null {
  if (programs.size === 0 && refused === 0 && sessions.length === 1) return null;
  const from = [...programs].map(([program, count]) => `${count} of ${program}`).join(", ");
  const said = [
    `${sessions.length} ${sessions.length === 1 ? "session" : "sessions"} came in${from === "" ? "" : ` (${from})`}.`,
  ];
  if (lost > 0) said.push(`${lost} ${lost === 1 ? "line" : "lines"} could not be read.`);
  if (refused > 0) said.push(`${refused} ${refused === 1 ? "file was" : "files were"} refused: ${reason}`);
  return said.join(" ");
}
