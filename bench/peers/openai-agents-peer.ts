import { messageText } from "../message-of.ts";
import { loadInstalled } from "./load-installed.ts";
import type { Conversation, Peer } from "./peer.ts";

const installation = "openai-agents";

interface AgentsModule {
  readonly MemorySession: new () => {
    addItems(items: readonly object[]): Promise<void>;
    getItems(): Promise<readonly object[]>;
  };
}

/** The session of the OpenAI Agents SDK that works without a service: it keeps its items in memory. */
export const openaiAgentsPeer: Peer = {
  label: "OpenAI Agents SDK, MemorySession",
  installation,
  note: "The SDK's MemorySession writes nothing; its other session is a remote service and cannot be measured here.",
  turnsEachRound: { small: 50, large: 20 },
  async open(): Promise<Conversation> {
    const { MemorySession } = await loadInstalled<AgentsModule>(installation, "@openai/agents");
    const session = new MemorySession();
    return {
      fill: (turns) => session.addItems(Array.from({ length: turns }, (_, index) => itemsOf(index)).flat()),
      turn: (index) => session.addItems(itemsOf(index)),
      async close() {},
      readContext: async () => (await session.getItems()).length,
    };
  },
};

function itemsOf(turn: number): object[] {
  const reply = { type: "output_text", text: messageText(turn * 2 + 1) };
  return [
    { role: "user", content: messageText(turn * 2) },
    { role: "assistant", status: "completed", content: [reply] },
  ];
}
