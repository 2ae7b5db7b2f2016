import { freezeDeep } from "../../internal/freeze-deep.ts";
import { defined } from "../../internal/defined.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "./entry.ts";

/** The accumulated settings of a path: the result of its `variables` and `setup` entries. */
export interface Settings {
  readonly variables: JsonObject;
  readonly systemPrompt: string | null;
  readonly activeTools: readonly string[];
  readonly activeSkills: readonly string[];
  /** The id of the last `setup` of each agent, by the agent's name. */
  readonly setups: Readonly<Record<string, string>>;
}

/** The combined change of several consecutive `variables` and `setup` entries. */
export interface SettingsChange {
  readonly set?: JsonObject;
  readonly unset?: readonly string[];
  readonly systemPrompt?: string | null;
  readonly activeTools?: readonly string[];
  readonly activeSkills?: readonly string[];
  readonly setups?: Readonly<Record<string, string>>;
}

/**
 * Where the settings of a path are stored.
 *
 * The k-th node of a path that is `variables` or `setup` keeps what the last lowbit(k) of them changed, itself
 * included, and the position of node k − lowbit(k), where lowbit(k) is the largest power of two that divides k. So no
 * entry repeats all earlier settings, reading them all takes log k steps, and stored nodes never change, so branches
 * and forks share them.
 */
export interface SettingsNode {
  /** The number of such nodes on the path; the k of this node. */
  readonly count: number;
  /** Its position in the log. */
  readonly seq: number;
  /** Absent in heads from a listing, which never carries variables; `store.settings` can still read them. */
  readonly change?: SettingsChange;
  /** The position of node k − lowbit(k); null if there is none. */
  readonly before: number | null;
}

/** The settings of a path that has none. */
export const NO_SETTINGS: Settings = Object.freeze({
  variables: Object.freeze({}),
  systemPrompt: null,
  activeTools: Object.freeze([]),
  activeSkills: Object.freeze([]),
  setups: Object.freeze({}),
});

/** An entry that changes the settings of its path. */
export type SettingsEntry = EntryOf<"variables"> | EntryOf<"setup">;

/** The settings node for an entry below a path with these settings. `nodeAt` returns earlier nodes by position. */
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

/** The parts of a folded node's change, latest first, until the change is first read. */
const unread = new WeakMap<SettingsNode, readonly Part[]>();

/** A node that computes its change when it is first read: folding a long log needs only the last few. */
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
        // The first node has nothing to remove.
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

/** @throws {Error} for a node from a listing, which lacks its change. */
function changeOf({ change, seq }: SettingsNode): SettingsChange {
  if (change === undefined)
    throw new Error(`The settings at position ${seq} are from a listing, which leaves them out.`);
  return change;
}

/** The settings of a path, given its nodes nearest first, in the order in which `before` links them. */
export function settingsFrom(nodes: readonly SettingsNode[]): Settings {
  return settingsOf(nodes, false);
}

/** As `settingsFrom`; with `taken`, the oldest node is not shared, and its variables are modified in place. */
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
 * Reads the settings of a path that ends with this node. With `taken`, what `nodeAt` returns is not shared: the
 * variables of the oldest node become part of the result.
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

/** The settings nodes by position, of a log that is folded from its beginning. */
export class SettingsTable {
  readonly #nodes = new Map<number, SettingsNode>();

  /** Adds the last settings node of a path. */
  add(settings: SettingsNode | null): void {
    if (settings !== null) this.#nodes.set(settings.seq, settings);
  }

  has(seq: number): boolean {
    return this.#nodes.has(seq);
  }

  /** @throws {Error} for a position whose settings node was never added. */
  readonly at = (seq: number): SettingsNode => {
    const node = this.#nodes.get(seq);
    if (node === undefined) throw new Error(`The settings at position ${seq} are not known.`);
    return node;
  };

  /** The nodes that a settings node links to, nearest first, itself included; null if one of them is unknown. */
  chainOf(last: SettingsNode | null): readonly SettingsNode[] | null {
    const nodes: SettingsNode[] = [];
    for (let node = last; node !== null; node = node.before === null ? null : this.at(node.before)) {
      nodes.push(node);
      if (node.before !== null && !this.has(node.before)) return null;
    }
    return nodes;
  }

  /** Reads the settings of a path that ends with this node. */
  read(last: SettingsNode | null): Settings {
    return settingsFrom(this.chainOf(last) ?? []);
  }
}

/** A node that contains all settings, like the entries of the first format. */
export function wholeSettings(settings: Omit<Settings, "setups">, seq: number): SettingsNode {
  const { variables: set, systemPrompt, activeTools, activeSkills } = settings;
  return freezeDeep({ count: 0, seq, change: { set, systemPrompt, activeTools, activeSkills }, before: null });
}

function lowbit(count: number): number {
  return count & -count;
}

/** Combines consecutive changes, given latest first. */
function join(
  changes: readonly SettingsChange[],
  taken = false,
): SettingsChange & Required<Pick<SettingsChange, "set" | "unset">> {
  let set: Record<string, JsonValue> = {};
  const unset = new Set<string>();
  // A Map, because an agent may have any name, such as __proto__.
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
