import { checkArgument } from "../check-arguments.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import type { Lineage } from "../log/header.ts";

/** The ids of the sessions that were made in a scope, in the order in which they were made. */
export interface LineageJournal {
  readonly visitOrder: readonly string[];
}

interface Scope {
  readonly stamping: boolean;
  readonly journals: readonly string[][];
}

const scopes = new AsyncLocalStorage<Scope>();
const OUTSIDE: Scope = { stamping: true, journals: [] };

/** The lineage of a session that nothing is known about. */
export const UNKNOWN_LINEAGE: Lineage = Object.freeze({
  parents: Object.freeze([]),
  operator: "implicit",
  kind: "unknown",
  extras: Object.freeze([]),
});

/** Runs a function in which sessions are made with (`true`) or without (`false`) a note of where they came from. */
export function withLineage<T>(enabled: boolean, run: () => T): T {
  checkArgument(typeof run === "function", run, "withLineage", "true or false, then a function");
  return scopes.run({ ...current(), stamping: enabled }, run);
}

/** Runs a function and keeps a journal of every session made in it, also by what it awaits. */
export function trackLineage<T>(run: (journal: LineageJournal) => T): T {
  checkArgument(typeof run === "function", run, "trackLineage", "a function");
  const visitOrder: string[] = [];
  return scopes.run({ ...current(), journals: [...current().journals, visitOrder] }, () => run({ visitOrder }));
}

/** The lineage to stamp here: the given one, or the unknown one where stamping is off. */
export function stamped(lineage: Lineage): Lineage {
  return current().stamping ? lineage : UNKNOWN_LINEAGE;
}

/** Notes in the open journals that a session was made. */
export function noteSession(id: string): void {
  for (const journal of current().journals) journal.push(id);
}

function current(): Scope {
  return scopes.getStore() ?? OUTSIDE;
}
