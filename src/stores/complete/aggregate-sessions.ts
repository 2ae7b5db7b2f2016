import type { Entry } from "../../session/log/entry.ts";
import { firstSummed, isImported, type SessionHead } from "../../session/log/fold.ts";
import { MergedTurns } from "../../session/log/merged-turns.ts";
import type { Message } from "../../session/message.ts";
import type { AggregateKey, AggregateQuery, AggregateRow, ImportedSums, SessionStore } from "../../session/store.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../../session/usage.ts";
import { listedHeads } from "./list-pages.ts";

/** After how many entries the scan yields to the event loop. */
const TURN_ENTRIES = 256;

type Keys = Pick<AggregateRow, AggregateKey>;

interface Sum {
  readonly keys: Keys;
  sessions: number;
  messages: number;
  toolCalls: number;
  usage: Usage;
  cost: number;
  imported: ImportedSum | null;
  /** The last session that was counted in `sessions`. */
  sessionId: string | null;
}

interface ImportedSum {
  messages: number;
  toolCalls: number;
  usage: Usage;
  cost: number;
  readonly uncosted: Map<string | null, Usage>;
}

/**
 * How far the time of an entry can be after the store's time of its append: clocks of other machines differ. An import
 * accepts no more.
 */
const AHEAD_MAX_MS = 24 * 60 * 60 * 1000;

/**
 * Computes the rows of each grouping, sorted by its keys. Every session of the query is read once, except those to which
 * nothing was appended since the period began.
 */
export async function aggregateSessions(
  store: SessionStore,
  { from = "", to = "\uffff", ...filter }: Omit<AggregateQuery, "groupBy">,
  groupings: readonly (readonly AggregateKey[])[],
): Promise<AggregateRow[][]> {
  const sums = groupings.map((groupBy) => ({ groupBy, byKeys: new Map<string, Sum>() }));
  for (const { groupBy, byKeys } of sums) if (groupBy.length === 0) sumOf(byKeys, {});
  const merged = new MergedTurns(store);
  const fromMs = Date.parse(from);
  for await (const head of listedHeads(store, filter)) {
    if (Date.parse(head.updatedAt) + AHEAD_MAX_MS < fromMs) continue;
    const after = firstSummed(head.header) - 1;
    for await (const entry of store.read(head.header.id, { after })) {
      // A store that reads synchronously would otherwise block the event loop.
      if (entry.seq % TURN_ENTRIES === 0) await new Promise((resolve) => setImmediate(resolve));
      if (entry.type !== "message" || entry.timestamp < from || entry.timestamp >= to) continue;
      if (!(await merged.countHere(entry))) continue;
      const imported = isImported(head.header, entry, entry.seq);
      for (const { groupBy, byKeys } of sums) {
        const sum = sumOf(byKeys, keysOf(groupBy, head, entry, entry.message));
        if (imported) addImported(sum, entry.message);
        else addMessage(sum, head.header.id, entry.message);
      }
    }
  }
  return sums.map(({ groupBy, byKeys }) => {
    const rows = [...byKeys.values()].map(({ keys, sessionId: _, imported, ...row }) => ({
      ...keys,
      ...row,
      ...(imported === null ? {} : { imported: importedOf(imported) }),
    }));
    return rows.sort((a, b) => compareKeys(a, b, groupBy));
  });
}

/** Sorts null before all other values. */
function compareKeys(a: Keys, b: Keys, groupBy: readonly AggregateKey[]): number {
  for (const key of groupBy) {
    const [left, right] = [a[key] ?? null, b[key] ?? null];
    if (left === right) continue;
    if (left === null || right === null) return left === null ? -1 : 1;
    return left < right ? -1 : 1;
  }
  return 0;
}

function keysOf(groupBy: readonly AggregateKey[], head: SessionHead, { timestamp }: Entry, message: Message): Keys {
  return {
    ...(groupBy.includes("day") && { day: timestamp.slice(0, 10) }),
    ...(groupBy.includes("model") && { model: modelOf(message) }),
    ...(groupBy.includes("user") && { user: head.header.userId }),
  };
}

function modelOf(message: Message): string | null {
  if (message.role !== "assistant" || message.provider === undefined || message.model === undefined) return null;
  return `${message.provider}/${message.model}`;
}

function sumOf(sums: Map<string, Sum>, keys: Keys): Sum {
  const name = JSON.stringify(keys);
  const found = sums.get(name);
  if (found !== undefined) return found;
  const sum: Sum = {
    keys,
    sessions: 0,
    messages: 0,
    toolCalls: 0,
    usage: NO_USAGE,
    cost: 0,
    imported: null,
    sessionId: null,
  };
  sums.set(name, sum);
  return sum;
}

function addMessage(sum: Sum, sessionId: string, message: Message): void {
  if (sum.sessionId !== sessionId) sum.sessions += 1;
  sum.sessionId = sessionId;
  sum.messages += 1;
  if (message.role !== "assistant") return;
  sum.toolCalls += message.toolCalls?.length ?? 0;
  sum.usage = addUsage(sum.usage, message.usage);
  sum.cost = addCost(sum.cost, message.cost);
}

function addImported(sum: Sum, message: Message): void {
  sum.imported ??= { messages: 0, toolCalls: 0, usage: NO_USAGE, cost: 0, uncosted: new Map() };
  const { imported } = sum;
  imported.messages += 1;
  if (message.role !== "assistant") return;
  imported.toolCalls += message.toolCalls?.length ?? 0;
  imported.usage = addUsage(imported.usage, message.usage);
  imported.cost = addCost(imported.cost, message.cost);
  if (message.cost !== undefined || message.usage === undefined) return;
  const model = modelOf(message);
  imported.uncosted.set(model, addUsage(imported.uncosted.get(model) ?? NO_USAGE, message.usage));
}

function importedOf({ uncosted, ...sums }: ImportedSum): ImportedSums {
  return { ...sums, uncosted: [...uncosted].map(([model, usage]) => ({ model, usage })) };
}
