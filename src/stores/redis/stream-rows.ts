import type { Entry } from "../../session/log/entry.ts";
import type { StoredRow } from "../rows/row-port.ts";
import type { RedisReply } from "./redis-client.ts";

type StreamReply = readonly (readonly [position: string, fields: readonly [string, string]])[];

/** The stream id of a position. Offset by one, as a stream cannot have the id 0. */
export function positionOf(seq: number): string {
  return String(seq + 1);
}

/** Rows as arguments of a script: id and text of each. One text costs the server less than three. Its parts have no line breaks. */
export function argsOf(rows: readonly StoredRow[]): string[] {
  return rows.flatMap(({ id, state, body }) => [id, `${state}\n${JSON.stringify(id)}\n${body}`]);
}

/** Decodes rows from the reply of a stream command. */
export function rowsOf(reply: RedisReply): StoredRow[] {
  return (reply as StreamReply).map(([position, [, text]]) => rowOf(Number.parseInt(position, 10) - 1, text));
}

/** Decodes a row from its text. In earlier layouts, only the entry has the id. */
export function rowOf(seq: number, text: string): StoredRow {
  const [state = "", second = "", body = second] = text.split("\n");
  const known = JSON.parse(second) as string | Entry;
  return { seq, id: typeof known === "string" ? known : known.id, state, body };
}
