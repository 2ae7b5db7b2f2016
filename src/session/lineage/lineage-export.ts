import { checkArgument, isObject } from "../check-arguments.ts";
import { SessionError, show } from "../errors.ts";
import { checkLineage, type Lineage } from "../log/header.ts";
import { isSessionId } from "../id.ts";
import { indexOf } from "./lineage.ts";
import { type Usage, checkCost, copyUsage } from "../usage.ts";

/** One session in a lineage export: its lineage, size and spending, without its content. */
export interface LineageRow extends Lineage {
  readonly id: string;
  readonly rowCount: number;
  readonly usage: Usage | null;
  readonly cost?: number;
}

/** A session, or a run that creates one, as input of an export. */
export interface ExportableSession {
  readonly id: string;
  readonly lineage: Lineage;
  readonly transcript: { readonly length: number };
  readonly usage?: Usage | null;
  readonly cost?: number | null;
}

/** Converts a session into a row of an export. */
export function sessionToRow(session: ExportableSession): LineageRow {
  checkArgument(isObject(session?.lineage), session, "sessionToRow", "a session");
  const { parents, operator, kind, extras } = session.lineage;
  const { usage = null, cost = null } = session;
  const row = { id: session.id, parents, operator, kind, extras, rowCount: session.transcript.length, usage };
  return cost === null ? row : { ...row, cost };
}

/** One line of JSON for each session, in the order given, without duplicates. */
export function toJsonl(sessions: Iterable<ExportableSession>): string {
  const lines: string[] = [];
  for (const session of indexOf(sessions, "toJsonl").values()) lines.push(`${JSON.stringify(sessionToRow(session))}\n`);
  return lines.join("");
}

/**
 * Parses the rows of an export. The lineage functions accept them like sessions.
 *
 * @throws {SessionError} `INVALID_VALUE` that names the first invalid line.
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
