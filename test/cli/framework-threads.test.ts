import { HumanMessage } from "@langchain/core/messages";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import type { AgentInputItem } from "@openai/agents";
import { expect, test } from "vitest";
import { SkeinSaver } from "../../src/interop/langgraph/index.ts";
import { SkeinSession } from "../../src/interop/openai-agents/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { runHere, sampleStore } from "./run-skein.ts";

const items = [
  { type: "reasoning", content: [] },
  { type: "reasoning", content: [] },
  { type: "message", role: "user", content: "Which way to the lake?" },
] as unknown as AgentInputItem[];

async function fill(store: SessionStore): Promise<void> {
  const checkpoint = {
    ...emptyCheckpoint(),
    channel_values: { messages: [new HumanMessage("Book a room.")], topic: "travel" },
    channel_versions: { messages: 1, topic: 1 },
  };
  const config = { configurable: { thread_id: "trip", checkpoint_ns: "" } };
  const metadata = { source: "input", step: -1, parents: {} } as const;
  await new SkeinSaver(store).put(config, checkpoint, metadata, { messages: 1, topic: 1 });
  await new SkeinSession(store, { sessionId: "hike" }).addItems(items);
}

test("list shows the framework and the thread of a session", async () => {
  const { stdout } = await runHere(["list", "--store", await sampleStore(fill)]);
  expect(stdout).toMatch(/^trip .*LangGraph trip: Book a room\.$/m);
  expect(stdout).toMatch(/^hike .*OpenAI Agents hike: Which way to the lake\?$/m);
});

test("show counts the records of a framework beside the turns, and prints them with --records", async () => {
  const store = await sampleStore(fill);
  const [hike, trip] = [
    await runHere(["show", "hike", "--store", store]),
    await runHere(["show", "trip", "--store", store]),
  ];
  expect(hike.stdout).toMatch(
    /^OpenAI Agents hike {2}hike {2}active\n\n2 records of OpenAI Agents: --records\n\nuser /,
  );
  expect(hike.stdout).not.toMatch(/^custom/m);
  expect(trip.stdout).toMatch(/^LangGraph trip /);
  expect(trip.stdout).toMatch(/\d+ records? of LangGraph: --records/);
  expect(trip.stdout).toContain("Book a room.");
  const all = await runHere(["show", "hike", "--records", "--store", store]);
  expect(all.stdout.match(/^custom/gm)).toHaveLength(2);
  const { entries } = JSON.parse((await runHere(["show", "hike", "--json", "--store", store])).stdout);
  expect(entries).toHaveLength(3);
});
