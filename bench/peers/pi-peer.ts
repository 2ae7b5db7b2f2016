import { messageText } from "../message-of.ts";
import { loadInstalled } from "./load-installed.ts";
import type { Conversation, Peer } from "./peer.ts";

const installation = "pi";

interface SessionManager {
  appendMessage(message: object): string;
  appendCompaction(summary: string, firstKeptEntryId: string, tokensBefore: number): string;
  buildSessionContext(): { readonly messages: readonly unknown[] };
  getEntries(): readonly { readonly id: string }[];
  getSessionFile(): string | undefined;
}

interface PiModule {
  readonly SessionManager: {
    create(cwd: string, sessionDirectory: string): SessionManager;
    open(path: string): SessionManager;
  };
}

const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const USAGE = { ...NOTHING, totalTokens: 0, cost: { ...NOTHING, total: 0 } };

/** The session files of the pi coding agent. */
export const piPeer: Peer = {
  label: "pi, SessionManager",
  installation,
  note: "pi writes synchronously, so it blocks the process for as long as the disk takes.",
  turnsEachRound: { small: 50, large: 50 },
  async open(folder): Promise<Conversation> {
    const { SessionManager } = await loadInstalled<PiModule>(installation, "@mariozechner/pi-coding-agent");
    const session = SessionManager.create(folder, folder);
    const turn = async (index: number): Promise<void> => {
      session.appendMessage(userMessage(index * 2));
      session.appendMessage(assistantMessage(index * 2 + 1));
    };
    const reopen = (): SessionManager => SessionManager.open(session.getSessionFile() as string);
    return {
      async fill(turns) {
        for (let index = 0; index < turns; index++) await turn(index);
      },
      turn,
      async close() {},
      readContext: async () => reopen().buildSessionContext().messages.length,
      async compact(messages) {
        const reopened = reopen();
        const kept = reopened.getEntries().at(-messages);
        if (kept === undefined) throw new Error(`There are no ${messages} messages to keep.`);
        reopened.appendCompaction("What happened before.", kept.id, 1000);
      },
    };
  },
};

function userMessage(index: number): object {
  return { role: "user", content: [{ type: "text", text: messageText(index) }], timestamp: Date.now() };
}

function assistantMessage(index: number): object {
  const content = [{ type: "text", text: messageText(index) }];
  const model = { api: "none", provider: "none", model: "none" };
  return { role: "assistant", content, ...model, usage: USAGE, stopReason: "stop", timestamp: Date.now() };
}
