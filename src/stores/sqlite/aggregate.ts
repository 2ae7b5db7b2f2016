import type { AggregateKey, AggregateQuery, AggregateRow } from "../../session/store.ts";
import { SPENT_MAX, USAGE_FIELDS, type Usage } from "../../session/usage.ts";
import { filterOf } from "./session-filter.ts";
import type { SqliteHandle, SqlValue } from "./sqlite-handle.ts";

type SumRow = Readonly<Record<string, SqlValue>>;

const ANSWER = "body ->> '$.message.role' = 'assistant'";

/** What is taken of one message; only an assistant's counts for more than itself. */
const FIELDS: readonly string[] = [
  "key",
  "user_id AS user",
  "body ->> '$.timestamp' AS time",
  // Text joined with null is null, so that a model needs both. As JSON, because half a surrogate pair is no text for SQLite.
  `CASE WHEN ${ANSWER} THEN (body -> '$.message.provider') || ',' || (body -> '$.message.model') END AS model`,
  `CASE WHEN ${ANSWER} THEN json_array_length(body, '$.message.toolCalls') END AS toolCalls`,
  `CASE WHEN ${ANSWER} THEN body ->> '$.message.cost' END AS cost`,
  ...USAGE_FIELDS.map((field) => `CASE WHEN ${ANSWER} THEN body ->> '$.message.usage.${field}' END AS ${field}`),
];

const SUMS: readonly string[] = [
  "count(DISTINCT key) AS sessions",
  "count(*) AS messages",
  "sum(toolCalls) AS toolCalls",
  // As floating numbers: a sum of whole ones that becomes too large for the database is an error there.
  ...["cost", ...USAGE_FIELDS].map(
    (field) =>
      `CASE WHEN count(${field}) > 0 THEN min(total(min(${field}, ${SPENT_MAX})), ${SPENT_MAX}) END AS ${field}`,
  ),
];

/** Leaves out what came with an import that does not count. The search for the word spares reading nearly all headers. */
const COUNTS = `(instr(header, '"counts":false') = 0 OR (header -> '$.inherited.counts') IS NOT 'false'
  OR seq >= header ->> '$.inherited.entries')`;

const KEYS: Readonly<Record<AggregateKey, string>> = { day: "substr(time, 1, 10)", model: "model", user: "user" };

/** Adds up the messages that each session itself appended, in the database. */
export function aggregate(handle: SqliteHandle, query: AggregateQuery): AggregateRow[] {
  const { groupBy, from = "", to = "\uffff", ...sessions } = query;
  const filter = filterOf(sessions);
  const keys = groupBy.map((key) => `${KEYS[key]} AS "${key}"`);
  const groups = groupBy.map((_, index) => index + 1).join(", ");
  const rows = handle
    .prepare(
      `WITH messages AS (
         SELECT ${FIELDS.join(", ")} FROM sessions JOIN entries ON session_key = key
         WHERE body ->> '$.type' = 'message' AND ${COUNTS} AND ${filter.sql}
       )
       SELECT ${[...keys, ...SUMS].join(", ")} FROM messages WHERE time >= ? AND time < ?
       ${groups === "" ? "" : `GROUP BY ${groups}`}`,
    )
    .all<SumRow>([...filter.values, from, to]);
  return rows.map((row) => rowOf(row, groupBy));
}

function rowOf(row: SumRow, groupBy: readonly AggregateKey[]): AggregateRow {
  const usage: Record<string, number> = {};
  for (const [index, field] of USAGE_FIELDS.entries()) {
    // Only the first three are always there; the others once a message has them.
    if (index < 3 || row[field] !== null) usage[field] = Number(row[field] ?? 0);
  }
  return {
    ...Object.fromEntries(groupBy.map((key) => [key, key === "model" ? modelOf(row[key]) : row[key]])),
    sessions: Number(row.sessions),
    messages: Number(row.messages),
    toolCalls: Number(row.toolCalls ?? 0),
    usage: usage as unknown as Usage,
    cost: Number(row.cost ?? 0),
  };
}

function modelOf(pair: SqlValue | undefined): string | null {
  return typeof pair === "string" ? (JSON.parse(`[${pair}]`) as string[]).join("/") : null;
}
