import { checkArgument } from "../check-arguments.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import type { Lineage } from "../log/header.ts";

/** The ids of the sessions created in a scope, in the order of creation. */
export interface LineageJournal {
  readonly visitOrder: readonly string[];
}

interface Scope {
  readonly stamping: boolean;
  readonly journals: readonly string[][];
}

const scopes = new AsyncLocalStorage<Scope>();
const OUTSIDE: Scope = { stamping: true, journals: [] };

/** The lineage of a session of unknown origin. */
export const UNKNOWN_LINEAGE: Lineage = Object.freeze({
  parents: Object.freeze([]),
  operator: "implicit",
  kind: "unknown",
  extras: Object.freeze([]),
});

/** Runs a function in which new sessions get a lineage (`true`) or not (`false`). */
export function withLineage<T>(enabled: boolean, run: () => T): T {
  checkArgument(typeof run === "function", run, "withLineage", "true or false, then a function");
  return scopes.run({ ...current(), stamping: enabled }, run);
}

/** Runs a function and records every session created in it, also in code that it awaits. */
export function trackLineage<T>(run: (journal: LineageJournal) => T): T {
  checkArgument(typeof run === "function", run, "trackLineage", "a function");
  const visitOrder: string[] = [];
  return scopes.run({ ...current(), journals: [...current().journals, visitOrder] }, () => run({ visitOrder }));
}

/** The lineage for a new session: the given one, or the unknown one if lineage is disabled in this scope. */
export function stamped(lineage: Lineage): Lineage {
  return current().stamping ? lineage : UNKNOWN_LINEAGE;
}

/** Adds a new session to the journals of the enclosing scopes. */
export function noteSession(id: string): void {
  for (const journal of current().journals) journal.push(id);
}

function current(): Scope {
  return scopes.getStore() ?? OUTSIDE;
}
