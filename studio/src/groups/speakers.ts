import type { GroupInfo } from "skein/client";
import type { GroupTurn } from "./group-turn.ts";

/** A speaker, with its sums. */
export interface Speaker {
  /** The agent's name; null for people. */
  readonly agent: string | null;
  readonly role: string | null;
  /** The index of its colour. */
  readonly colour: number;
  readonly said: number;
  readonly steps: number;
  readonly passed: number;
  readonly failed: number;
  readonly tokens: number;
  readonly cost: number;
}

/** The number of colours; they repeat for more speakers. */
const COLOURS = 6;

/** The speakers in the order of their first turn; people first. */
export function speakersOf(turns: readonly GroupTurn[], groups: readonly GroupInfo[]): readonly Speaker[] {
  const byName = new Map<string | null, GroupTurn[]>();
  for (const turn of turns) {
    if (turn.agent === null && turn.role !== "user") continue;
    const own = byName.get(turn.agent);
    if (own === undefined) byName.set(turn.agent, [turn]);
    else own.push(turn);
  }
  const agents = [...byName.keys()].filter((name) => name !== null);
  const roles = rolesOf(agents, groups);
  const people = byName.has(null) ? [speakerOf(null, null, 0, byName.get(null) ?? [])] : [];
  return [
    ...people,
    ...agents.map((name, index) => speakerOf(name, roles.get(name) ?? null, index % COLOURS, byName.get(name) ?? [])),
  ];
}

/** The roles of agents, from the server's group that contains most of them: a session does not record its group. */
export function rolesOf(agents: readonly string[], groups: readonly GroupInfo[]): ReadonlyMap<string, string> {
  const names = new Set(agents);
  const matching = (group: GroupInfo): number => group.agents.filter(({ name }) => names.has(name)).length;
  const best = groups.toSorted((a, b) => matching(b) - matching(a))[0];
  if (best === undefined || matching(best) === 0) return new Map();
  return new Map(best.agents.map(({ name, role }) => [name, role]));
}

function speakerOf(agent: string | null, role: string | null, colour: number, turns: readonly GroupTurn[]): Speaker {
  const count = (...kinds: GroupTurn["kind"][]): number => turns.filter(({ kind }) => kinds.includes(kind)).length;
  return {
    agent,
    role,
    colour,
    said: count("said"),
    steps: count("work"),
    passed: count("passed", "refused"),
    failed: count("failed"),
    tokens: turns.reduce((sum, { tokens }) => sum + tokens, 0),
    cost: turns.reduce((sum, { cost }) => sum + cost, 0),
  };
}
