import { uuidv7 } from "../../internal/uuid.ts";
import type { NewRow } from "../rows/encode-plan.ts";
import type { KeyNames } from "./key-names.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { writeRow } from "./session-log.ts";

const ROWS_INLINE_MAX = 10_000;
const ROWS_AT_ONCE = 1000;
const STAGED_SECONDS = 3600;

/** Rows as they are handed to a script: in its arguments, or in a list when they are too many for one command. */
export interface StagedRows {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** Removes what no script has taken. */
  discard(): Promise<void>;
}

/** Gets rows ready for a script. A list that no script takes, because its maker died, runs out by itself. */
export async function stageRows(
  handle: RedisHandle,
  names: KeyNames,
  sessionId: string,
  rows: readonly NewRow[],
): Promise<StagedRows> {
  if (rows.length <= ROWS_INLINE_MAX) return { keys: [], args: argsOf(rows), discard: async () => {} };
  const key = names.staging(sessionId, uuidv7());
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE) {
    const part = argsOf(rows.slice(first, first + ROWS_AT_ONCE));
    await handle.command(key, ["RPUSH", key, ...part], { repeatable: false });
    if (first === 0) await handle.command(key, ["EXPIRE", key, String(STAGED_SECONDS)]);
  }
  const discard = async (): Promise<void> => void (await handle.command(key, ["UNLINK", key]));
  return { keys: [key], args: [], discard };
}

function argsOf(rows: readonly NewRow[]): string[] {
  const args: string[] = [];
  for (const row of rows) args.push(row.id, writeRow(row));
  return args;
}
