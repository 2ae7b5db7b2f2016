import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assistant, call, result, timeAt, usage, user } from "../../test/sample-log.ts";
import { backends } from "../../test/store-backends.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { createHeader } from "../session/log/header.ts";
import type { SessionState } from "../session/state/state.ts";
import { StateDiff } from "../session/state/state-diff.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { readState } from "./read-state.ts";

describe.for(backends.map((backend) => [backend.name, backend] as const))("on %s, the state", ([, backend]) => {
  let directory: string;
  let store: SessionStore;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "state-"));
    store = await backend.open(directory);
  });

  afterEach(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });

  test("is that of the leaf, or of the given node, or before the root", async () => {
    await store.create(createHeader({ id: "s", userId: "u", metadata: { plan: "pro" } }));
    await store.append("s", [
      said("a", user("1")),
      said("b", assistant("2", { usage: usage(60, 40), cost: 1 })),
      { type: "leaf", targetId: "a" },
      { type: "variables", set: { step: 2 }, unset: [] },
      said("c", assistant("3", { usage: usage(1, 1), cost: 0.5 })),
      { type: "compaction", summary: "s", firstKeptEntryId: "c", tokensBefore: 1, usage: usage(10) },
    ]);
    await store.saveCheckpoint({
      id: "k",
      sessionId: "s",
      version: 2,
      leafId: "b",
      createdAt: timeAt(0),
      parentCheckpointId: null,
      metadata: {},
    });
    const leaf = await stateAt(store, "s");
    expect(idsOf(leaf)).toEqual(["a", "c"]);
    expect(leaf).toMatchObject({
      turnCount: 2,
      totalTokens: 2,
      totalCost: 0.5,
      spent: { totalTokens: 112, totalCost: 1.5 },
      variables: { step: 2 },
      metadata: { plan: "pro" },
      checkpointId: "k",
      version: 6,
    });
    const other = await stateAt(store, "s", { leafId: "b" });
    expect(idsOf(other)).toEqual(["a", "b"]);
    expect(other).toMatchObject({ totalTokens: 100, totalCost: 1, variables: {}, leafId: "b", version: 6 });
    const root = await stateAt(store, "s", { leafId: null });
    expect(root).toMatchObject({ turns: [], turnCount: 0, totalTokens: 0, leafId: null });
    expect(await stateAt(store, "s", { turns: false })).toEqual({ ...leaf, turns: [] });
    const glance = await stateAt(store, "s", { turns: false, checkpoint: false });
    expect(glance).toEqual({ ...leaf, turns: [], checkpointId: null });
    for (const state of [leaf, other, root]) expectFrozen(state);
  });

  test("of a fork has the turns of its source and continues separately", async () => {
    await store.create(createHeader({ id: "s" }));
    await store.append("s", [said("a", user("1")), said("b", user("2"))]);
    const forkedFrom = { sessionId: "s", entryId: "a", version: 1, branchName: "try" };
    await store.fork("s", createHeader({ id: "f", forkedFrom }), { at: "a" });
    await store.append("f", [said("c", user("3"))]);
    const fork = await stateAt(store, "f");
    expect(idsOf(fork)).toEqual(["a", "c"]);
    expect(fork).toMatchObject({
      sessionId: "f",
      parentSessionId: "s",
      branchName: "try",
      turnCount: 2,
      status: "active",
    });
    expect(idsOf(await stateAt(store, "s"))).toEqual(["a", "b"]);
  });

  test("has the totals of its turns, is the same on every store, and differs by a diff that can be applied", async () => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step(), { minLength: 1, maxLength: 12 }), async (steps) => {
        const id = `s${++runs}`;
        const [here, there] = [await play(store, id, steps), await play(openMemoryStore(), id, steps)];
        for (const [index, state] of here.entries()) {
          expect(state.turns).toHaveLength(state.turnCount);
          expect(sum(state.turns.map(({ tokensUsed }) => tokensUsed))).toBe(state.totalTokens);
          expect(sum(state.turns.map(({ cost }) => cost))).toBe(state.totalCost);
          expect({ ...state, updatedAt: "" }).toEqual({ ...there[index], updatedAt: "" });
          const before = here[index - 1] ?? state;
          expect(StateDiff.apply(before, StateDiff.compute(before, state))).toEqual(state);
        }
      }),
      { numRuns: 8 },
    );
  });
});

type Step = (nodes: readonly string[]) => EntryDraft;

/** One entry; if it refers to an earlier one, it chooses among those that exist. */
function step(): fc.Arbitrary<Step> {
  const drafts: readonly ((nodes: readonly string[], choice: number) => EntryDraft)[] = [
    () => said(undefined, { role: "system", content: "be kind" }),
    () => said(undefined, user("hello")),
    (_, choice) => said(undefined, assistant("yes", { usage: usage(choice, 1), cost: choice / 4 })),
    () => said(undefined, assistant(null, { toolCalls: [call("c")], provider: "acme", model: "one" })),
    () => said(undefined, result("c")),
    (nodes, choice) => ({ type: "leaf", targetId: nodes[choice % (nodes.length + 1)] ?? null }),
    (_, choice) => ({ type: "variables", set: { [`k${choice % 3}`]: choice }, unset: [`k${(choice + 1) % 3}`] }),
    (nodes) => {
      const firstKeptEntryId = nodes.at(-1);
      if (firstKeptEntryId === undefined) return said(undefined, user("hello"));
      return { type: "compaction", summary: "s", firstKeptEntryId, tokensBefore: 1, usage: usage(5), cost: 1 };
    },
    (_, choice) => ({ type: "session_info", name: `n${choice}` }),
  ];
  return fc.tuple(fc.constantFrom(...drafts), fc.nat(7)).map(
    ([draft, choice]) =>
      (nodes: readonly string[]) =>
        draft(nodes, choice),
  );
}

/** The states after each step. */
async function play(store: SessionStore, sessionId: string, steps: readonly Step[]): Promise<SessionState[]> {
  await store.create(createHeader({ id: sessionId, createdAt: timeAt(0) }));
  const nodes: string[] = [];
  const states: SessionState[] = [];
  for (const [index, make] of steps.entries()) {
    const draft = { ...make(nodes), id: `e${index}`, timestamp: timeAt(index) };
    await store.append(sessionId, [draft]);
    if (draft.type !== "leaf" && draft.type !== "session_info") nodes.push(draft.id);
    states.push(await stateAt(store, sessionId));
  }
  return states;
}

async function stateAt(
  store: SessionStore,
  sessionId: string,
  options: Parameters<typeof readState>[2] = {},
): Promise<SessionState> {
  const head = await store.head(sessionId);
  if (head === null) throw new Error(`There is no session ${sessionId}.`);
  return readState(store, head, options);
}

function said(id: string | undefined, message: Extract<EntryDraft, { type: "message" }>["message"]): EntryDraft {
  return { type: "message", message, ...(id === undefined ? {} : { id }) };
}

function idsOf(state: SessionState): string[] {
  return state.turns.map(({ turnId }) => turnId);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function expectFrozen(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  for (const item of Object.values(value)) expectFrozen(item);
}
