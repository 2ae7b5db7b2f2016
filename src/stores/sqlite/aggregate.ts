import type { AggregateKey, AggregateQuery, AggregateRow } from "../../session/store.ts";
import { USAGE_FIELDS, type Usage } from "../../session/usage.ts";
import { filterOf } from "./session-filter.ts";
import type { SqliteHandle, SqlValue } from "./sqlite-handle.ts";

/** What a row is grouped by, as SQL over one message. */
const KEYS: Readonly<Record<AggregateKey, string>> = {
  day: "substr(time, 1, 10)",
  model: `CASE WHEN assistant AND body ->> '$.message.provider' IS NOT NULL AND body ->> '$.message.model' IS NOT NULL
    THEN (body ->> '$.message.provider') || '/' || (body ->> '$.message.model') END`,
  user: "user_id",
};

type SumRow = Readonly<Record<string, SqlValue>>;

/** Adds up the messages that each session itself appended, in the database. */
export function aggregate(handle: SqliteHandle, query: AggregateQuery): AggregateRow[] {
  const { groupBy, from = "", to = "\uffff", ...sessions } = query;
  const filter = filterOf(sessions);
  const keys = groupBy.map((key) => `${KEYS[key]} AS "${key}"`);
  const rows = handle
    .prepare(
      `WITH messages AS MATERIALIZED (
         SELECT key, user_id, body, body ->> '$.timestamp' AS time, body ->> '$.message.role' = 'assistant' AS assistant
         FROM sessions JOIN entries ON session_key = key
         WHERE body ->> '$.type' = 'message' AND ${filter.sql}
       )
       SELECT ${[...keys, ...SUMS].join(", ")} FROM messages WHERE time >= ? AND time < ?
       ${groupBy.length === 0 ? "" : `GROUP BY ${groupBy.map((_, index) => index + 1).join(", ")}`}`,
    )
    .all<SumRow>([...filter.values, from, to]);
  return rows.map((row) => rowOf(row, groupBy));
}

const SUMS: readonly string[] = [
  "count(DISTINCT key) AS sessions",
  "count(*) AS messages",
  "sum(CASE WHEN assistant THEN json_array_length(body, '$.message.toolCalls') END) AS toolCalls",
  "sum(CASE WHEN assistant THEN body ->> '$.message.cost' END) AS cost",
  ...USAGE_FIELDS.map((field) => `sum(CASE WHEN assistant THEN body ->> '$.message.usage.${field}' END) AS ${field}`),
];

function rowOf(row: SumRow, groupBy: readonly AggregateKey[]): AggregateRow {
  const usage: Record<string, number> = {};
  for (const [index, field] of USAGE_FIELDS.entries()) {
    // Only the first three are always there; the others once a message has them.
    if (index < 3 || row[field] !== null) usage[field] = Number(row[field] ?? 0);
  }
  return {
    ...Object.fromEntries(groupBy.map((key) => [key, row[key]])),
    sessions: Number(row.sessions),
    messages: Number(row.messages),
    toolCalls: Number(row.toolCalls ?? 0),
    usage: usage as unknown as Usage,
    cost: Number(row.cost ?? 0),
  };
}
