import type { AggregateKey, AggregateQuery, AggregateRow } from "../../session/store.ts";
import { SPENT_MAX, USAGE_FIELDS, type Usage } from "../../session/usage.ts";
import { filterOf } from "./session-filter.ts";
import type { SqlDatabase, SqlDialect } from "./sql-database.ts";

type SumRow = Readonly<Record<string, string | number | null>>;

/** What is taken of one message; only an assistant's counts for more than itself. */
function fieldsOf({ json, text, arrayLength }: SqlDialect): string {
  const ofAnswer = (value: string, name: string): string =>
    `CASE WHEN ${text("body", "message", "role")} = 'assistant' THEN ${value} END AS "${name}"`;
  const number = (field: string, ...path: readonly string[]): string =>
    ofAnswer(`CAST(${text("body", "message", ...path, field)} AS double precision)`, field);
  const named = (field: string): string => `CAST(${json("body", "message", field)} AS text)`;
  return [
    `key, "user", ${text("body", "timestamp")} AS time`,
    // Text joined with null is null, so that a model needs both. As JSON, because half a surrogate pair is no text.
    ofAnswer(`${named("provider")} || ',' || ${named("model")}`, "model"),
    ofAnswer(arrayLength(json("body", "message", "toolCalls")), "toolCalls"),
    number("cost"),
    ...USAGE_FIELDS.map((field) => number(field, "usage")),
  ].join(", ");
}

const SUMS: string = [
  "count(DISTINCT key) AS sessions",
  "count(*) AS messages",
  `sum("toolCalls") AS "toolCalls"`,
  ...["cost", ...USAGE_FIELDS].map((field) => `${atMost(`sum(${atMost(`"${field}"`)})`)} AS "${field}"`),
].join(", ");

/** A number that is null where it was; `least` would make the limit of it. */
function atMost(value: string): string {
  return `CASE WHEN ${value} > ${SPENT_MAX} THEN ${SPENT_MAX} ELSE ${value} END`;
}

/** The first entry of a session that counts, as what came with some imports does not. */
function firstOf({ json, text }: SqlDialect): string {
  return `CASE CAST(${json("header", "inherited", "counts")} AS text) WHEN 'false'
    THEN CAST(${text("header", "inherited", "entries")} AS bigint) ELSE 0 END`;
}

/** How many entries of a session count in its source, also where it holds them itself. */
function takenOf({ text }: SqlDialect): string {
  return `coalesce(CAST(${text("header", "forkedFrom", "version")} AS bigint), 0)`;
}

const KEYS: Readonly<Record<AggregateKey, string>> = { day: "substr(time, 1, 10)", model: "model", user: `"user"` };

/** Adds up the messages that each session itself appended, in the database. */
export async function aggregate(database: SqlDatabase, query: AggregateQuery): Promise<AggregateRow[]> {
  const { groupBy, from = "", to = "~", ...sessions } = query;
  const { dialect } = database;
  const { prefix, text, byBytes } = dialect;
  const filter = filterOf(dialect, sessions);
  const keys = groupBy.map((key) => `${KEYS[key]} AS "${key}", `).join("");
  const groups = groupBy.map((_, index) => index + 1).join(", ");
  const rows = await database.rows<SumRow>(
    `WITH counted AS MATERIALIZED (
       SELECT key, user_id AS "user", ${firstOf(dialect)} AS first, ${takenOf(dialect)} AS taken FROM ${prefix}sessions WHERE ${filter.sql}
     ), messages AS (
       SELECT ${fieldsOf(dialect)} FROM counted JOIN ${prefix}entries ON session_key = key AND seq >= first AND seq >= taken
       WHERE ${text("body", "type")} = 'message'
     )
     SELECT ${keys}${SUMS} FROM messages WHERE time ${byBytes} >= ? AND time ${byBytes} < ?
     ${groups === "" ? "" : `GROUP BY ${groups}`}`,
    [...filter.values, from, to],
  );
  return rows.map((row) => rowOf(row, groupBy, dialect));
}

function rowOf(row: SumRow, groupBy: readonly AggregateKey[], { jsonOf }: SqlDialect): AggregateRow {
  const usage: Record<string, number> = {};
  for (const [index, field] of USAGE_FIELDS.entries()) {
    // Only the first three are always there; the others once a message has them.
    if (index < 3 || row[field] !== null) usage[field] = Number(row[field] ?? 0);
  }
  const modelOf = (pair: unknown): string | null =>
    typeof pair === "string" ? (JSON.parse(`[${jsonOf(pair)}]`) as string[]).join("/") : null;
  return {
    ...Object.fromEntries(groupBy.map((key) => [key, key === "model" ? modelOf(row[key]) : row[key]])),
    sessions: Number(row.sessions),
    messages: Number(row.messages),
    toolCalls: Number(row.toolCalls ?? 0),
    usage: usage as unknown as Usage,
    cost: Number(row.cost ?? 0),
  };
}
