import type { ModelReply } from "../../../agent/model/model.ts";
import { compact } from "../../../agent/context/compact.ts";
import { createAgent, type SessionManager, type SessionTree } from "../../../index.ts";
import { GroupSession } from "../../../group/group-session.ts";
import { RoundRobinTurnManager } from "../../../group/turns/round-robin-turn-manager.ts";
import { turnDraft, type TurnInput } from "../../../lifecycle/turn-input.ts";
import { importSession } from "../../../export/index.ts";
import { offline, scripted } from "../../../models/index.ts";
import { recordings } from "./sample-recordings.ts";

const USER = "local";
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Fills an empty store with sample sessions: one with branches, one that was compacted, one with a merged branch, one
 * with many tool rounds, one of several agents, and one whose run was interrupted.
 *
 * @returns how many sessions the store then has; 0 if it was not empty.
 */
export async function makeSampleSessions(manager: SessionManager): Promise<number> {
  if ((await manager.store.count()) > 0) return 0;
  await makeInterrupted(manager);
  await makeGroup(manager);
  await makeRecorded(manager);
  await makeMerged(manager);
  await makeCompacted(manager);
  await makeBranched(manager);
  return manager.store.count();
}

/** A turn with a timestamp some days ago; an answer also has usage and cost. */
function turn(role: "user" | "assistant", content: string, daysAgo: number, minute = 0): TurnInput {
  const timestamp = timeOf(daysAgo, minute);
  if (role === "user") return { role, content, timestamp };
  const [inputTokens, outputTokens] = [200 + content.length, Math.ceil(content.length / 4)];
  const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
  return { role, content, timestamp, provider: "sample", model: "small", usage, cost: usage.totalTokens / 1_000_000 };
}

function timeOf(daysAgo: number, minute: number): string {
  return new Date(Date.now() - daysAgo * DAY_MS + minute * 60_000).toISOString();
}

async function start(manager: SessionManager, name: string, turns: readonly TurnInput[]): Promise<SessionTree> {
  const { sessionId } = await manager.create({ userId: USER });
  const tree = await manager.open(sessionId);
  await tree.appendAll([{ type: "session_info", name }, ...turns.map(turnDraft)]);
  return tree;
}

async function makeBranched(manager: SessionManager): Promise<void> {
  const tree = await start(manager, "Plan a trip", [
    turn("user", "Where should I go in May: Lisbon or Oslo?", 2),
    turn("assistant", "**Lisbon**: 22 degrees, and the jacarandas are in bloom.", 2, 1),
  ]);
  const [question, lisbon] = (await tree.getBranch()).filter(({ type }) => type === "message");
  if (question === undefined || lisbon === undefined) return;
  await tree.setLabel(lisbon.id, "plan B");
  await tree.branch(question.id);
  for (const each of [
    turn("assistant", "**Oslo**: 18 hours of daylight, and the fjord is quiet.", 2, 2),
    turn("user", "Then Oslo. What do I pack?", 1),
    turn("assistant", "- layers\n- a rain jacket\n- walking shoes", 1, 1),
  ]) {
    await manager.addTurn(tree.id, each);
  }
  await tree.refresh();
  if (tree.leafId !== null) await tree.setLabel(tree.leafId, "packing list");
  await manager.checkpoint(tree.id, { metadata: { note: "before the train" } });
}

async function makeCompacted(manager: SessionManager): Promise<void> {
  const days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const tree = await start(
    manager,
    "Notes of a week",
    days.flatMap((day, index) => [
      turn("user", `What did we decide on ${day}?`, 8 - index),
      turn("assistant", `On ${day} we decided to write the tests first, and to rename one thing.`, 8 - index, 1),
    ]),
  );
  await compact(tree, { model: offline(), settings: { keepRecentTokens: 40 } });
  await manager.addTurn(tree.id, turn("user", "And what is left for next week?", 1));
  await manager.addTurn(tree.id, turn("assistant", "The renaming.", 1, 1));
}

async function makeMerged(manager: SessionManager): Promise<void> {
  const tree = await start(manager, "A name for the release", [
    turn("user", "What do we call the release?", 4),
    turn("assistant", "Heron, after the bird on the pond.", 4, 1),
  ]);
  const branch = await manager.fork(tree.id, "shorter names");
  await manager.addTurn(branch.sessionId, turn("user", "Something with four letters?", 3));
  await manager.addTurn(branch.sessionId, turn("assistant", "Wren.", 3, 1));
  await manager.merge(tree.id, branch.sessionId);
}

/** Stores the recordings of real runs, which `scripts/record-samples.mjs` makes, with times of some days ago. */
async function makeRecorded(manager: SessionManager): Promise<void> {
  for (const { header, entries } of recordings) {
    const shiftMs = Date.now() - 3 * DAY_MS - Date.parse(header.createdAt);
    const shifted = (timestamp: string): string => new Date(Date.parse(timestamp) + shiftMs).toISOString();
    const lines = [
      { ...header, createdAt: shifted(header.createdAt) },
      ...entries.map((entry) => ({ ...entry, timestamp: shifted(entry.timestamp) })),
    ].map((line) => JSON.stringify(line));
    await importSession(manager.store, lines, { userId: USER, id: crypto.randomUUID(), trust: true });
  }
}

/** An answer of the sample agents. */
function said(content: string): ModelReply {
  return { role: "assistant", content, provider: "sample", model: "small", stopReason: "stop" };
}

async function makeGroup(manager: SessionManager): Promise<void> {
  const { sessionId } = await manager.create({ userId: USER });
  await (await manager.open(sessionId)).setName("A sentence about a cat");
  const agentOf = (name: string, says: readonly string[]) =>
    createAgent({ name, prompt: `You are the ${name}.`, model: scripted(says.map(said)) });
  const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) });
  group.addAgent(agentOf("writer", ["A cat sat on a mat, at last."]), "author");
  group.addAgent(agentOf("critic", ["Plain, but do not tell the writer."]), "critic", { visibleTo: ["editor"] });
  group.addAgent(agentOf("editor", ["Good. We print it."]), "editor");
  await group.run(sessionId, "A sentence about a cat, please.");
}

/** Appends what a process leaves in the log if it dies while a tool runs. */
async function makeInterrupted(manager: SessionManager): Promise<void> {
  const tree = await start(manager, "Interrupted in the middle", []);
  const runId = crypto.randomUUID();
  const call = { id: "call_1", name: "list_workspace_files", arguments: "{}" };
  await tree.appendAll([
    { type: "message", message: { role: "user", content: "list the files" } },
    { type: "run", runId, phase: "started", agent: "assistant", model: "sample/small", tools: [] },
    { type: "message", message: { role: "assistant", content: null, toolCalls: [call], stopReason: "tool_calls" } },
  ]);
}
