import { join } from "node:path";
import { createHeader, openStore, SessionTree } from "skein";
import { messageOf } from "../message-of.ts";
import type { ColdSession, OpenCold } from "./cold-session.ts";

/** Opens a store by its URL, as an application does. */
export function openSkein(kind: "sqlite" | "jsonl"): OpenCold {
  return async (folder, key): Promise<ColdSession> => {
    const store = await openStore(`${kind}:${join(folder, kind === "sqlite" ? "sessions.db" : "sessions")}`);
    const sessionId = key ?? (await store.create(createHeader({ userId: "user-1" }))).header.id;
    const tree = key === null ? await SessionTree.on(store, sessionId) : null;
    return {
      key: sessionId,
      async append(messages) {
        for (let index = 0; index < messages; index++) await tree?.appendMessage(messageOf(index));
      },
      async context() {
        const opened = await SessionTree.on(store, sessionId);
        return (await opened.buildContext()).messages.length;
      },
      fork: async () => void (await store.fork(sessionId, createHeader())),
      close: () => store.close(),
    };
  };
}
