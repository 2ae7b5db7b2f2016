import { checkArgument, isObject } from "../check-arguments.ts";
import { SessionError, show } from "../errors.ts";
import { checkLineage, type Lineage } from "../log/header.ts";
import { isSessionId } from "../id.ts";
import { indexOf } from "./lineage.ts";
import { type Usage, checkCost, copyUsage } from "../usage.ts";

/** What an export says of one session: where it came from and what it amounts to, nothing of what was said. */
export interface LineageRow extends Lineage {
  readonly id: string;
  readonly rowCount: number;
  readonly usage: Usage | null;
  readonly cost?: number;
}

/** A session, or a run that makes one, as an export needs it. */
export interface ExportableSession {
  readonly id: string;
  readonly lineage: Lineage;
  readonly transcript: { readonly length: number };
  readonly usage?: Usage | null;
  readonly cost?: number | null;
}

/** A session as a row of an export. */
export function sessionToRow(session: ExportableSession): LineageRow {
  checkArgument(isObject(session?.lineage), session, "sessionToRow", "a session");
  const { parents, operator, kind, extras } = session.lineage;
  const { usage = null, cost = null } = session;
  const row = { id: session.id, parents, operator, kind, extras, rowCount: session.transcript.length, usage };
  return cost === null ? row : { ...row, cost };
}

/** One line of JSON for each session, in the order given; a session that comes twice has one line. */
export function toJsonl(sessions: Iterable<ExportableSession>): string {
  const lines: string[] = [];
  for (const session of indexOf(sessions, "toJsonl").values()) lines.push(`${JSON.stringify(sessionToRow(session))}\n`);
  return lines.join("");
}

/**
 * The rows of an export; they can be walked, summed and drawn as the sessions could.
 *
 * @throws {SessionError} `INVALID_VALUE` that names the first line which is not such a row.
 */
export function parseLineageJsonl(text: string): LineageRow[] {
  checkArgument(typeof text === "string", text, "parseLineageJsonl", "a text");
  const rows: LineageRow[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    rows.push(parseRow(line, index + 1));
  }
  return rows;
}

function parseRow(line: string, number: number): LineageRow {
  try {
    const row = JSON.parse(line) as LineageRow;
    checkLineage(row);
    if (!isSessionId(row.id)) throw new Error(`its id is ${show(row.id)}`);
    if (!Number.isSafeInteger(row.rowCount)) throw new Error(`its rowCount is ${show(row.rowCount)}`);
    copyUsage(row.usage);
    checkCost(row.cost ?? null);
    return row;
  } catch (cause) {
    throw new SessionError("INVALID_VALUE", `Line ${number} is not a row of a lineage export.`, { cause });
  }
}
