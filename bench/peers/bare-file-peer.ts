import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../message-of.ts";
import type { Conversation, Peer } from "./peer.ts";

/** One JSON line for each message, written to a file that stays open. */
export const bareFilePeer: Peer = {
  label: "bare file append",
  installation: null,
  turnsEachRound: { small: 50, large: 50 },
  async open(folder): Promise<Conversation> {
    const path = join(folder, "messages.jsonl");
    const handle = await open(path, "a");
    const turn = async (index: number): Promise<void> => {
      for (const position of [index * 2, index * 2 + 1]) await handle.write(`${JSON.stringify(messageOf(position))}\n`);
    };
    return {
      async fill(turns) {
        for (let index = 0; index < turns; index++) await turn(index);
      },
      turn,
      close: () => handle.close(),
      async readContext() {
        const lines = (await readFile(path, "utf8")).split("\n");
        return lines.filter((line) => line !== "").map((line) => JSON.parse(line)).length;
      },
    };
  },
};
