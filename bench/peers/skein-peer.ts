import { createHeader, SessionTree } from "skein";
import { messageOf } from "../message-of.ts";
import { settleFiles } from "../settle-files.ts";
import { type DurableKind, openStoreOf } from "../store-kind.ts";
import type { Conversation, Peer } from "./peer.ts";

/** Skein itself, on one of its stores. */
export function skeinPeer(kind: DurableKind): Peer {
  return {
    label: `skein ${kind}`,
    installation: null,
    turnsEachRound: { small: 50, large: 50 },
    open: (folder) => openConversation(kind, folder),
  };
}

async function openConversation(kind: DurableKind, folder: string): Promise<Conversation> {
  const store = await openStoreOf(kind, folder);
  const { header } = await store.create(createHeader());
  const tree = await SessionTree.on(store, header.id);
  const turn = async (index: number): Promise<void> => {
    for (const position of [index * 2, index * 2 + 1]) await tree.appendMessage(messageOf(position));
  };
  return {
    async fill(turns) {
      for (let index = 0; index < turns; index++) await turn(index);
    },
    turn,
    settle: () => settleFiles(kind, folder),
    warmUp: async () => void (await tree.appendMessage(messageOf(0))),
    close: () => store.close(),
    async readContext() {
      await using opened = await openStoreOf(kind, folder);
      return (await (await SessionTree.on(opened, header.id)).buildContext()).messages.length;
    },
    async compact(messages) {
      await using opened = await openStoreOf(kind, folder);
      const reopened = await SessionTree.on(opened, header.id);
      const kept = (await reopened.entries()).at(-messages);
      if (kept === undefined) throw new Error(`There are no ${messages} messages to keep.`);
      await reopened.appendCompaction({
        summary: "What happened before.",
        firstKeptEntryId: kept.id,
        tokensBefore: 1000,
      });
    },
  };
}
