import {
  type AggregateAnalytics,
  type AnalyticsQuery,
  type AnalyticsTotals,
  aggregateAnalytics,
} from "../../../lifecycle/aggregate-analytics.ts";
import { SessionError, type SessionStatus } from "../../../index.ts";
import type { BudgetLevel } from "../../../session/payer.ts";
import { costOfImported } from "../../../models/shown-cost.ts";
import type { ImportedSums } from "../../../session/store.ts";
import { show } from "../../../session/errors.ts";
import { type Command, type CommandContext, type CommandValues, textOption, textsOption } from "../../command.ts";
import { openManager } from "../../open-manager.ts";
import { tableLines } from "../../table.ts";
import { printable } from "../../terminal.ts";
import { STATUS_OPTION } from "./list.ts";

/** Printed for an unknown value. */
const NONE = "–";

const NUMBERS = ["SESSIONS", "TURNS", "TOOL CALLS", "TOKENS", "COST (USD)"].map((title) => ({ title, right: true }));

/** Sums up what sessions used. */
export const stats: Command = {
  name: "stats",
  summary: "Sum up turns, tokens and cost by day, model and user.",
  details:
    "Turns that a fork or a merge shares are counted once, in the session that appended them. A session without turns of its own is not counted.",
  arguments: [],
  options: {
    by: {
      value: "WHAT",
      repeated: true,
      choices: ["day", "model", "user"],
      what: "only this table (default: all three)",
    },
    user: { value: "ID", what: "only sessions of this user, and how far the user has used up $SKEIN_BUDGETS" },
    status: STATUS_OPTION,
    from: { value: "DATE", what: "only turns at or after this day or time (UTC)" },
    to: { value: "DATE", what: "only turns before this day or time (UTC)" },
  },
  examples: [
    { line: "skein stats --by model", what: "the cost of each model" },
    { line: "skein stats --from 2026-01-01 --to 2026-02-01 --json", what: "one month, for a program" },
  ],
  json: {
    totals:
      "the sums: sessions, totalTurns, toolCalls, totalTokens, totalCost (USD), usage, and imported: the sums of imported sessions, which are in no other number (uncosted: usage without a recorded cost, by model)",
    byDay: "the same for each day (UTC), with day",
    byModel: "the same for each model, with model as provider/model, or null",
    byUser: "the same for each user, with user, or null",
    budget:
      "with --user and $SKEIN_BUDGETS, a list with window, unit, limit, spent, reserved, warnAt and movesOnAt of each limit; else null",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    const query = queryOf(context.values);
    await using store = await context.openStore();
    const analytics = await aggregateAnalytics(store, query);
    const user = textOption(context.values, "user");
    const { budgets } = await openManager(store);
    const budget = user === undefined ? null : ((await budgets?.levels(user)) ?? null);
    if (context.json) context.printJson({ ...analytics, budget });
    else {
      print(context, analytics);
      if (budget !== null) printBudget(context, budget);
    }
    return 0;
  },
};

function print({ terminal, values }: CommandContext, { totals, byDay, byModel, byUser }: AggregateAnalytics): void {
  const wanted = textsOption(values, "by");
  const tables = {
    day: byDay.map((row) => [row.day, row] as const),
    model: byModel.map((row) => [row.model ?? "(none)", row] as const),
    user: byUser.map((row) => [row.user ?? "(none)", row] as const),
  };
  for (const [name, rows] of Object.entries(tables)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const own = rows.filter(([, { totalTurns }]) => totalTurns > 0);
    const imports = [...rows, ["all", totals] as const].flatMap(([key, { imported }]) =>
      imported === undefined ? [] : [[`${printable(key, 60)}, imported`, ...importedNumbersOf(imported)]],
    );
    const cells = [...own, ["all", totals] as const].map(([key, sums]) => [printable(key, 60), ...numbersOf(sums)]);
    for (const line of tableLines([{ title: name.toUpperCase() }, ...NUMBERS], [...cells, ...imports]))
      terminal.line(line);
    terminal.line();
  }
  if (totals.imported === undefined) return;
  terminal.line("Imported sessions are in no other row. A cost with ~ is not recorded, but computed from list prices.");
}

function printBudget({ terminal }: CommandContext, levels: readonly BudgetLevel[]): void {
  const titles = ["BUDGET", "LIMIT", "SPENT", "RESERVED", "MOVES ON"].map((title) => ({ title, right: false }));
  const cells = levels.map(({ window, unit, limit, spent, reserved, movesOnAt }) => {
    const shown = unit === "cost" ? (value: number) => `$${amount(value)}` : (value: number) => `${value} tokens`;
    return [window, shown(limit), shown(spent), shown(reserved), movesOnAt ?? NONE];
  });
  for (const line of tableLines(titles, cells)) terminal.line(line);
}

function numbersOf({ sessions, totalTurns, toolCalls, totalTokens, totalCost }: AnalyticsTotals): string[] {
  return [sessions, totalTurns, toolCalls, totalTokens].map(String).concat(totalCost === 0 ? NONE : amount(totalCost));
}

function importedNumbersOf(imported: ImportedSums): string[] {
  const { messages, toolCalls, usage } = imported;
  const shown = costOfImported(imported);
  const cost = shown === null ? NONE : `${shown.computed ? "~" : ""}${amount(shown.cost)}`;
  return [NONE, String(messages), String(toolCalls), String(usage.totalTokens), cost];
}

/** Dollars with four decimals; a smaller amount gets as many as it needs to be visible. */
function amount(cost: number): string {
  return cost > 0 && cost < 0.0001 ? cost.toPrecision(1) : cost.toFixed(4);
}

function queryOf(values: CommandValues): AnalyticsQuery {
  const [userId, from, to] = [textOption(values, "user"), timeOption(values, "from"), timeOption(values, "to")];
  const status = textsOption(values, "status") as readonly SessionStatus[];
  return {
    ...(userId !== undefined && { userId }),
    ...(status.length > 0 && { status }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
}

function timeOption(values: CommandValues, name: string): string | undefined {
  const text = textOption(values, name);
  if (text === undefined) return undefined;
  const time = /^\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?$/.test(text) ? new Date(text) : new Date(Number.NaN);
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new SessionError(
    "INVALID_OPTION",
    `--${name} is ${show(text)}; give a date, as in 2026-01-31 or 2026-01-31T12:00:00Z.`,
  );
}
