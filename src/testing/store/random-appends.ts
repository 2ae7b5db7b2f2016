import type { EntryDraft } from "../../session/log/entry.ts";
import { isNode } from "../../session/log/entry.ts";
import type { SessionStore } from "../../session/store.ts";
import { assistant, compaction, label, leaf, name, spending, status, user, variables } from "./drafts.ts";

/** A seeded generator of random numbers from 0 up to, but not including, 1. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Appends random entries of all kinds, one to four at a time. Some are appended onto earlier entries, and some are retries. */
export async function appendAtRandom(
  store: SessionStore,
  sessionId: string,
  options: { seed: number; appends: number },
): Promise<void> {
  const random = randomOf(options.seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const nodes: string[] = [];
  let made = 0;
  let last: EntryDraft[] = [user("first", { id: `${options.seed}-first` })];
  for (let i = 0; i < options.appends; i++) {
    if (random() < 0.1) {
      await store.append(sessionId, last);
      continue;
    }
    const drafts = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
      draftAtRandom(random, pick, nodes, `${options.seed}-${made++}`),
    );
    const onto = nodes.length > 0 && random() < 0.2 ? { onto: random() < 0.1 ? null : pick(nodes) } : {};
    const { entries } = await store.append(sessionId, drafts, { ...onto, guard: { holds: true } });
    last = drafts;
    nodes.push(...entries.filter((entry) => isNode(entry)).map(({ id }) => id));
  }
}

function draftAtRandom(
  random: () => number,
  pick: <T>(items: readonly T[]) => T,
  nodes: readonly string[],
  id: string,
): EntryDraft {
  const always: (() => EntryDraft)[] = [
    () => user(`message ${id}`, { id }),
    () => spending(Math.floor(random() * 1000), { id }),
    () => assistant("called", { toolCalls: [{ id: "t", name: "read", arguments: "{}" }] }, { id }),
    () => variables({ [pick(["a", "b", "c"])]: id }, [pick(["a", "b", "c"])], { id }),
    () => ({ id, type: "model_change", provider: pick(["p", "q"]), modelId: pick(["m", "n"]) }),
    () => ({ id, type: "thinking_level_change", thinkingLevel: pick(["off", "low", "high"]) }),
    () => ({ id, type: "custom", customType: "t", data: { n: random() } }),
    () => ({ id, type: "custom_message", customType: "t", content: "note", display: random() < 0.5 }),
    () => ({ id, type: "run", runId: pick(["r1", "r2", "r3"]), phase: pick(["started", "finished", "failed"]) }),
    () => name(pick(["", "one", "two"]), { id }),
    () => status(pick(["active", "suspended", "closed"]), { id }),
  ];
  if (nodes.length === 0) return pick(always)();
  const later: (() => EntryDraft)[] = [
    () => leaf(random() < 0.1 ? null : pick(nodes), { id }),
    () => label(pick(nodes), pick([null, "here"]), { id }),
    () => compaction(pick(nodes), { id }),
    () => ({ id, type: "setup", agent: pick(["one", "two"]) }),
    () => ({ id, type: "branch_summary", summary: "left", fromId: pick(nodes) }),
  ];
  return pick([...always, ...later])();
}
