import { expect } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import type { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { type ScriptedReply, scripted } from "../../src/models/scripted.ts";
import type { Entry, EntryDraft } from "../../src/session/log/entry.ts";
import { inputIdOf } from "../../src/session/log/open-runs.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { entriesOf, gate } from "./lifecycle-case.ts";

/** An agent without tools. */
export function agentOf(...replies: readonly ScriptedReply[]): Agent {
  return createAgent({ name: "clerk", prompt: "Help.", model: scripted(replies), builtInTools: false });
}

/** An agent that reports its first request, and answers it on demand. */
export function slowAgent(answer = "Done.", ...more: readonly ScriptedReply[]) {
  const asked = gate();
  const told = gate();
  const first = async (): Promise<string> => {
    asked.open();
    await told.opened;
    return answer;
  };
  return { agent: agentOf(first, ...more), asked: asked.opened, answer: told.open };
}

/** An agent that calls `pay` once, which needs approval, and then reports that it is done. */
export function payingAgent(paid: string[] = []): Agent {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: { type: "object", properties: { euros: { type: "number" } } },
    needsApproval: true,
    execute: () => {
      paid.push("paid");
      return "paid";
    },
  });
  const call = { id: "c1", name: "pay", arguments: '{"euros":5}' };
  const model = scripted([
    { role: "assistant", content: null, toolCalls: [call], stopReason: "tool_calls" },
    (request) => `Result: ${String(request.messages.at(-1)?.content)}`,
  ]);
  return createAgent({ name: "clerk", prompt: "Help.", model, tools: [pay], builtInTools: false });
}

/** The same agent for the process that continues after the call. */
export function goingOnAgent(paid: string[] = []): Agent {
  const first = payingAgent(paid);
  const model = scripted([(request) => `Result: ${String(request.messages.at(-1)?.content)}`]);
  return createAgent({ name: "clerk", prompt: "Help.", model, tools: first.tools ?? [], builtInTools: false });
}

/** The texts of a session. */
export async function saidIn(store: SessionStore, id: string): Promise<unknown[]> {
  return (await entriesOf(store, id)).flatMap((entry) => (entry.type === "message" ? [entry.message.content] : []));
}

/** The starts and ends of a session's runs. */
export async function phasesIn(store: SessionStore, id: string): Promise<string[]> {
  return (await entriesOf(store, id)).flatMap((entry) =>
    entry.type === "run" ? [`${entry.runId} ${entry.phase}`] : [],
  );
}

/** The open runs of a session. */
export async function openIn(store: SessionStore, id: string): Promise<string[]> {
  return ((await store.head(id))?.openRuns ?? []).map(({ runId, state }) => `${runId} ${state}`);
}

/** Waits for the first question of a session. */
export async function questionIn(store: SessionStore, id: string): Promise<string> {
  const asks = (entry: Entry): boolean => entry.type === "approval" && entry.decision === undefined;
  let found: Entry | undefined;
  const find = async (): Promise<Entry | undefined> => {
    found = (await entriesOf(store, id)).find(asks);
    return found;
  };
  await expect.poll(find).toBeDefined();
  return (found as Entry).id;
}

/** A session with a run whose process has died. */
export async function withDeadRun(
  desk: SessionManager,
  store: SessionStore,
  ...more: readonly EntryDraft[]
): Promise<void> {
  await desk.create({ userId: "ann", id: "s" });
  await store.append("s", [
    { type: "message", id: inputIdOf("r"), message: { role: "user", content: "Hello." } },
    { type: "run", runId: "r", phase: "started", claim: 1 },
    ...more,
  ]);
}
