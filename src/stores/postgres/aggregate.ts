import type { AggregateKey, AggregateQuery, AggregateRow } from "../../session/store.ts";
import { SPENT_MAX, USAGE_FIELDS, type Usage } from "../../session/usage.ts";
import { textFromJsonb } from "./jsonb-text.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { filterOf } from "./session-filter.ts";

type SumRow = Readonly<Record<string, string | null>>;

/** What is taken of one message; only an assistant's counts for more than itself. */
const FIELDS: readonly string[] = [
  "key",
  `user_id AS "user"`,
  "entries.body ->> 'timestamp' AS time",
  // Text joined with null is null, so that a model needs both.
  "(answer ->> 'provider') || '/' || (answer ->> 'model') AS model",
  `CASE jsonb_typeof(answer -> 'toolCalls') WHEN 'array' THEN jsonb_array_length(answer -> 'toolCalls') END AS "toolCalls"`,
  "(answer ->> 'cost')::float8 AS cost",
  ...USAGE_FIELDS.map((field) => `(answer -> 'usage' ->> '${field}')::float8 AS "${field}"`),
];

const SUMS: readonly string[] = [
  "count(DISTINCT key) AS sessions",
  "count(*) AS messages",
  `sum("toolCalls") AS "toolCalls"`,
  ...["cost", ...USAGE_FIELDS].map((field) => `${atMost(`sum(${atMost(`"${field}"`)})`)} AS "${field}"`),
];

/** Leaves out what came with an import that does not count. */
const COUNTS = `(header #>> '{inherited,counts}' IS DISTINCT FROM 'false'
  OR seq >= (header #>> '{inherited,entries}')::bigint)`;

/** A number that is null where it was; `least` would make the limit of it. */
function atMost(value: string): string {
  return `CASE WHEN ${value} > ${SPENT_MAX} THEN ${SPENT_MAX} ELSE ${value} END`;
}

const KEYS: Readonly<Record<AggregateKey, string>> = { day: "substr(time, 1, 10)", model: "model", user: `"user"` };

/** Adds up the messages that each session itself appended, in the database. */
export async function aggregate(handle: PostgresHandle, query: AggregateQuery): Promise<AggregateRow[]> {
  const { groupBy, from = "", to = "~", ...sessions } = query;
  const { schema } = handle;
  const { sql, values } = filterOf(schema, sessions);
  const keys = groupBy.map((key) => `${KEYS[key]} AS "${key}"`);
  const groups = groupBy.map((_, index) => index + 1).join(", ");
  const [first, last] = [values.length + 1, values.length + 2];
  const rows = await handle.read<SumRow>(
    `WITH messages AS (
       SELECT ${FIELDS.join(", ")} FROM ${schema}.sessions JOIN ${schema}.entries ON session_key = key
       CROSS JOIN LATERAL (
         SELECT CASE WHEN body -> 'message' ->> 'role' = 'assistant' THEN body -> 'message' END AS answer
       ) AS answers
       WHERE body ->> 'type' = 'message' AND ${COUNTS} AND ${sql}
     )
     SELECT ${[...keys, ...SUMS].join(", ")} FROM messages
     WHERE time >= $${first}::text COLLATE "C" AND time < $${last}::text COLLATE "C"
     ${groups === "" ? "" : `GROUP BY ${groups}`}`,
    [...values, from, to],
  );
  return rows.map((row) => rowOf(row, groupBy));
}

function rowOf(row: SumRow, groupBy: readonly AggregateKey[]): AggregateRow {
  const usage: Record<string, number> = {};
  for (const [index, field] of USAGE_FIELDS.entries()) {
    // Only the first three are always there; the others once a message has them.
    if (index < 3 || row[field] !== null) usage[field] = Number(row[field] ?? 0);
  }
  const keys = groupBy.map((key) => [key, key === "model" && row.model ? textFromJsonb(row.model) : row[key]]);
  return {
    ...Object.fromEntries(keys),
    sessions: Number(row.sessions),
    messages: Number(row.messages),
    toolCalls: Number(row.toolCalls ?? 0),
    usage: usage as unknown as Usage,
    cost: Number(row.cost ?? 0),
  };
}
