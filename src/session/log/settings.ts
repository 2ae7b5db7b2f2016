import { freezeDeep } from "../../internal/freeze-deep.ts";
import { defined } from "../../internal/defined.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "./entry.ts";

/** What the `variables` and `setup` entries of a path add up to. */
export interface Settings {
  readonly variables: JsonObject;
  readonly systemPrompt: string | null;
  readonly activeTools: readonly string[];
  readonly activeSkills: readonly string[];
  /** The id of the last `setup` of each agent, by the agent's name. */
  readonly setups: Readonly<Record<string, string>>;
}

/** What some `variables` and `setup` entries in a row change, added up. */
export interface SettingsChange {
  readonly set?: JsonObject;
  readonly unset?: readonly string[];
  readonly systemPrompt?: string | null;
  readonly activeTools?: readonly string[];
  readonly activeSkills?: readonly string[];
  readonly setups?: Readonly<Record<string, string>>;
}

/**
 * Where the settings of a path stand.
 *
 * The k-th node of a path that is `variables` or `setup` keeps what the last lowbit(k) of them changed, itself included, and the position of
 * node k − lowbit(k), where lowbit(k) is the largest power of two that divides k. So an entry never holds all that was
 * set before it, reading everything takes log k steps, and nothing of it ever changes: it holds for branches and forks.
 */
export interface SettingsNode {
  /** The k of the node: how many such nodes its path has. */
  readonly count: number;
  /** Its position in the log. */
  readonly seq: number;
  /** Left out where a listing gives the head: listings never carry variables. `store.settings` reads them all the same. */
  readonly change?: SettingsChange;
  /** The position of node k − lowbit(k); null where there is none. */
  readonly before: number | null;
}

/** The settings of a path on which nothing was set. */
export const NO_SETTINGS: Settings = Object.freeze({
  variables: Object.freeze({}),
  systemPrompt: null,
  activeTools: Object.freeze([]),
  activeSkills: Object.freeze([]),
  setups: Object.freeze({}),
});

/** An entry that changes the settings of its path. */
export type SettingsEntry = EntryOf<"variables"> | EntryOf<"setup">;

/** The node that an entry becomes below a path with these settings. `nodeAt` gives earlier nodes by position. */
export function stepSettings(
  parent: SettingsNode | null,
  entry: SettingsEntry,
  nodeAt: (seq: number) => SettingsNode,
): SettingsNode {
  const count = (parent?.count ?? 0) + 1;
  const start = count - lowbit(count);
  const joined: SettingsNode[] = [];
  let before = parent;
  while (before !== null && before.count > start) {
    joined.push(before);
    before = before.before === null ? null : nodeAt(before.before);
  }
  return foldedNode({ count, seq: entry.seq, before: before?.seq ?? null }, [entry, ...joined]);
}

type Part = SettingsEntry | SettingsNode;

/** What the change of a folded node is put together of, the latest first, as long as nobody has read it. */
const unread = new WeakMap<SettingsNode, readonly Part[]>();

/** A node whose change is put together when it is first read: who folds a long log needs only the last few. */
function foldedNode({ count, seq, before }: Omit<SettingsNode, "change">, parts: readonly Part[]): SettingsNode {
  let change: SettingsChange | null = null;
  const node: SettingsNode = Object.freeze({
    count,
    seq,
    get change() {
      if (change !== null) return change;
      const { set, unset, ...rest } = join(changesOf(parts, []));
      change = freezeDeep({
        ...rest,
        ...(Object.keys(set).length === 0 ? {} : { set }),
        // Where nothing comes before, there is nothing to take away.
        ...(before === null || unset.length === 0 ? {} : { unset }),
      });
      unread.delete(node);
      return change;
    },
    before,
  });
  unread.set(node, parts);
  return node;
}

function changesOf(parts: readonly Part[], into: SettingsChange[]): SettingsChange[] {
  for (const part of parts) {
    const inner = "count" in part ? unread.get(part) : undefined;
    if (inner !== undefined) changesOf(inner, into);
    else into.push("count" in part ? changeOf(part) : changeBy(part));
  }
  return into;
}

function changeBy(entry: SettingsEntry): SettingsChange {
  if (entry.type === "setup") return { setups: { [entry.agent]: entry.id } };
  const { set, unset, systemPrompt, activeTools, activeSkills } = entry;
  return { set, unset, ...defined({ systemPrompt, activeTools, activeSkills }) };
}

/** @throws {Error} for a node from a listing: what is folded from it would lack what it changed. */
function changeOf({ change, seq }: SettingsNode): SettingsChange {
  if (change === undefined)
    throw new Error(`The settings at position ${seq} are from a listing, which leaves them out.`);
  return change;
}

/** All that was set on a path, given its nodes with the nearest first, as `before` leads from one to the next. */
export function settingsFrom(nodes: readonly SettingsNode[]): Settings {
  return settingsOf(nodes, false);
}

/** The same; with `taken` the oldest node is nobody else's, and the variables that it holds are added to. */
function settingsOf(nodes: readonly SettingsNode[], taken: boolean): Settings {
  if (nodes.length === 0) return NO_SETTINGS;
  const { set: variables, systemPrompt = null, activeTools, activeSkills, setups } = join(nodes.map(changeOf), taken);
  return freezeDeep({
    variables,
    systemPrompt,
    activeTools: activeTools ?? NO_SETTINGS.activeTools,
    activeSkills: activeSkills ?? NO_SETTINGS.activeSkills,
    setups: setups ?? NO_SETTINGS.setups,
  });
}

/**
 * All that was set on a path that ends in these settings. With `taken`, what `nodeAt` gives is nobody else's: the variables of
 * the oldest node become those of the result.
 */
export async function readSettings(
  last: SettingsNode | null,
  nodeAt: (seq: number) => Promise<SettingsNode>,
  { taken = false }: { readonly taken?: boolean } = {},
): Promise<Settings> {
  const nodes: SettingsNode[] = [];
  for (let node = last; node !== null; node = node.before === null ? null : await nodeAt(node.before)) nodes.push(node);
  return settingsOf(nodes, taken && nodes.length > 1);
}

/** Settings by position, of a log that is folded from its beginning. */
export class SettingsTable {
  readonly #nodes = new Map<number, SettingsNode>();

  /** Remembers what the last settings node of a path holds. */
  add(settings: SettingsNode | null): void {
    if (settings !== null) this.#nodes.set(settings.seq, settings);
  }

  has(seq: number): boolean {
    return this.#nodes.has(seq);
  }

  /** @throws {Error} for a position whose settings were never added. */
  readonly at = (seq: number): SettingsNode => {
    const node = this.#nodes.get(seq);
    if (node === undefined) throw new Error(`The settings at position ${seq} are not known.`);
    return node;
  };

  /** The nodes that settings lead to, the nearest first, themselves included; null where one of them is not known. */
  chainOf(last: SettingsNode | null): readonly SettingsNode[] | null {
    const nodes: SettingsNode[] = [];
    for (let node = last; node !== null; node = node.before === null ? null : this.at(node.before)) {
      nodes.push(node);
      if (node.before !== null && !this.has(node.before)) return null;
    }
    return nodes;
  }

  /** All that was set on a path that ends in these settings. */
  read(last: SettingsNode | null): Settings {
    return settingsFrom(this.chainOf(last) ?? []);
  }
}

/** A node that holds everything by itself, as entries of the first format do. */
export function wholeSettings(settings: Omit<Settings, "setups">, seq: number): SettingsNode {
  const { variables: set, systemPrompt, activeTools, activeSkills } = settings;
  return freezeDeep({ count: 0, seq, change: { set, systemPrompt, activeTools, activeSkills }, before: null });
}

function lowbit(count: number): number {
  return count & -count;
}

/** What changes come to one after the other, the latest first. */
function join(
  changes: readonly SettingsChange[],
  taken = false,
): SettingsChange & Required<Pick<SettingsChange, "set" | "unset">> {
  let set: Record<string, JsonValue> = {};
  const unset = new Set<string>();
  // An agent may have any name, such as __proto__.
  const setups = new Map<string, string>();
  const rest: { -readonly [Key in keyof SettingsChange]: SettingsChange[Key] } = {};
  for (let index = changes.length - 1; index >= 0; index--) {
    const change = changes[index] as SettingsChange;
    for (const key of change.unset ?? []) {
      delete set[key];
      unset.add(key);
    }
    // Copying the thousands of variables of a long session takes longer than reading them.
    const whole = taken && index === changes.length - 1 && !Object.isFrozen(change.set);
    if (whole) set = change.set as Record<string, JsonValue>;
    else Object.assign(set, change.set);
    if (unset.size > 0) for (const key in change.set) unset.delete(key);
    if (change.systemPrompt !== undefined) rest.systemPrompt = change.systemPrompt;
    if (change.activeTools !== undefined) rest.activeTools = change.activeTools;
    if (change.activeSkills !== undefined) rest.activeSkills = change.activeSkills;
    for (const agent in change.setups) setups.set(agent, change.setups[agent] as string);
  }
  if (setups.size > 0) rest.setups = Object.fromEntries(setups);
  return { ...rest, set, unset: [...unset] };
}
