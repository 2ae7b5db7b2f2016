import type { Entry } from "../../session/log/entry.ts";
import type { StoredRow } from "../rows/row-port.ts";
import type { RedisReply } from "./redis-client.ts";

type StreamReply = readonly (readonly [position: string, fields: readonly [string, string]])[];

/** Where in a stream a position is; a stream has nothing at 0. */
export function positionOf(seq: number): string {
  return String(seq + 1);
}

/** Rows as they are handed to a script. One value costs the server less than three. No part has a line break in it. */
export function argsOf(rows: readonly StoredRow[]): string[] {
  return rows.flatMap(({ id, state, body }) => [id, `${state}\n${JSON.stringify(id)}\n${body}`]);
}

/** The rows that a stream gave out. */
export function rowsOf(reply: RedisReply): StoredRow[] {
  return (reply as StreamReply).map(([position, [, text]]) => rowOf(Number.parseInt(position, 10) - 1, text));
}

/** A row of its text; those of earlier layouts have their id only in the entry. */
export function rowOf(seq: number, text: string): StoredRow {
  const [state = "", second = "", body = second] = text.split("\n");
  const known = JSON.parse(second) as string | Entry;
  return { seq, id: typeof known === "string" ? known : known.id, state, body };
}
