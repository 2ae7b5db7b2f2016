import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { messageText } from "../message-of.ts";
import { loadInstalled } from "./load-installed.ts";
import type { Conversation, Peer } from "./peer.ts";

const installation = "mastra";
const BATCH = 500;

interface LibSqlStore {
  /** Not part of its public types; only used outside of the measured code. */
  readonly client: { execute(sql: string): Promise<unknown> };
  init(): Promise<void>;
  saveThread(input: { readonly thread: object }): Promise<unknown>;
  saveMessages(input: { readonly messages: readonly object[]; readonly format: "v2" }): Promise<unknown>;
  getMessages(input: object): Promise<readonly unknown[]>;
}

interface MastraModule {
  readonly LibSQLStore: new (init: { readonly url: string }) => LibSqlStore;
}

/** The thread storage of Mastra, on SQLite. */
export const mastraPeer: Peer = {
  label: "Mastra, LibSQLStore",
  installation,
  note: "The last Mastra for Node 20 is measured; later ones need Node 22. It gives a model the last 40 messages.",
  context: "the last 40",
  turnsEachRound: { small: 50, large: 50 },
  async open(folder): Promise<Conversation> {
    const { LibSQLStore } = await loadInstalled<MastraModule>(installation, "@mastra/libsql");
    const url = `file:${join(folder, "mastra.db")}`;
    const store = new LibSQLStore({ url });
    await store.init();
    const now = new Date();
    const thread = { id: "a-thread", resourceId: "a-user", title: "", metadata: {}, createdAt: now, updatedAt: now };
    await store.saveThread({ thread });
    return {
      async fill(turns) {
        for (let from = 0; from < turns; from += BATCH) {
          const length = Math.min(BATCH, turns - from);
          const messages = Array.from({ length }, (_, index) => messagesOf(from + index)).flat();
          await store.saveMessages({ messages, format: "v2" });
        }
      },
      async turn(index) {
        await store.saveMessages({ messages: messagesOf(index), format: "v2" });
      },
      async settle() {
        await store.client.execute("PRAGMA wal_checkpoint(TRUNCATE)");
      },
      async close() {},
      async readContext() {
        const opened = new LibSQLStore({ url });
        return (await opened.getMessages({ threadId: thread.id, format: "v2" })).length;
      },
    };
  },
};

function messagesOf(turn: number): object[] {
  return ["user", "assistant"].map((role, index) => ({
    id: randomUUID(),
    threadId: "a-thread",
    resourceId: "a-user",
    role,
    type: "text",
    createdAt: new Date(),
    content: { format: 2, parts: [{ type: "text", text: messageText(turn * 2 + index) }] },
  }));
}
