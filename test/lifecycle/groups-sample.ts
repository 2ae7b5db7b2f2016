import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import type { ExecutingAgent, GroupAgentContext, GroupAnswer } from "../../src/group/group-agent.ts";
import type { GroupEvent } from "../../src/group/group-event.ts";
import { GroupSession, type GroupSessionInit } from "../../src/group/group-session.ts";
import type { SessionManagerInit } from "../../src/lifecycle/manager-options.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { textOf } from "../../src/session/message.ts";
import type { SessionState, SessionTurn } from "../../src/session/state/state.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { backends } from "../store-backends.ts";

/** The parts of a test of groups. */
export interface GroupStage {
  readonly store: SessionStore;
  readonly manager: SessionManager;
  /** An active session of ann. */
  readonly id: string;
  /** A group on the manager. */
  group(init?: Partial<GroupSessionInit>): GroupSession;
}

export async function stageOn(store: SessionStore, init: Partial<SessionManagerInit> = {}): Promise<GroupStage> {
  const manager = new SessionManager({ store, ...init });
  const { sessionId: id } = await manager.create({ userId: "ann", id: "s" });
  return { store, manager, id, group: (parts = {}) => new GroupSession({ manager, ...parts }) };
}

/** Runs tests of groups on each kind of store, each test on a new store. */
export function onEveryStore(
  what: string,
  tests: Readonly<Record<string, (stage: GroupStage, reopen: () => Promise<SessionStore>) => Promise<void>>>,
): void {
  for (const backend of backends) {
    describe(`${what} on the ${backend.name} store`, () => {
      for (const [name, run] of Object.entries(tests)) {
        test(name, async () => {
          const directory = await mkdtemp(join(tmpdir(), "skein-groups-"));
          let store = await backend.open(directory);
          // With a store in memory, only another object in the same process can continue.
          const reopen = async (): Promise<SessionStore> => {
            if (!store.capabilities.durable) return store;
            await store.close();
            store = await backend.open(directory);
            return store;
          };
          try {
            await run(await stageOn(store), reopen);
          } finally {
            await store.close();
            await rm(directory, { recursive: true, force: true });
          }
        });
      }
    });
  }
}

/** An agent that records its requests. */
export interface SampleAgent extends ExecutingAgent {
  readonly asked: { readonly message: string; readonly history: readonly SessionTurn[] }[];
}

type Given = GroupAnswer | Error | ((context: GroupAgentContext, history: readonly SessionTurn[]) => unknown);

/** An agent that returns these answers in order, and then its name and the number of its calls. */
export function agentOf(name: string, ...answers: readonly Given[]): SampleAgent {
  const asked: SampleAgent["asked"] = [];
  return {
    name,
    asked,
    async execute(message, history, context) {
      asked.push({ message, history });
      const index = asked.length - 1;
      const answer = index < answers.length ? answers[index] : `${name} ${asked.length}`;
      if (answer instanceof Error) throw answer;
      return (typeof answer === "function" ? answer(context, history) : answer) as GroupAnswer;
    },
  };
}

/** The turns, with the names of their authors. */
export function linesOf(turns: SessionState["turns"]): string[] {
  return turns.map(({ agent, role, content }) => `${agent ?? role}: ${textOf(content)}`);
}

export async function entriesOf(store: SessionStore, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  return entries;
}

/** The phases of the runs in a log, in order. */
export async function phasesOf(store: SessionStore, id: string): Promise<string[]> {
  return (await entriesOf(store, id)).flatMap((entry) => (entry.type === "run" ? [entry.phase] : []));
}

/** The notes of a group beside its turns. */
export async function notesOf(store: SessionStore, id: string): Promise<unknown[]> {
  return (await entriesOf(store, id)).flatMap((entry) => (entry.type === "custom" ? [entry.data] : []));
}

export async function eventsOf(run: AsyncIterable<GroupEvent>): Promise<GroupEvent[]> {
  const events: GroupEvent[] = [];
  for await (const event of run) events.push(event);
  return events;
}

/** An answer that never arrives, and a promise for its request. */
export function hanging(): { readonly answer: () => Promise<never>; readonly asked: Promise<void> } {
  let wake: () => void = () => {};
  const asked = new Promise<void>((resolve) => {
    wake = resolve;
  });
  return {
    asked,
    answer: () => {
      wake();
      return new Promise<never>(() => {});
    },
  };
}
