import { join } from "node:path";
import { openBareDatabase } from "../bare-database.ts";
import { messageOf } from "../message-of.ts";
import type { Conversation, Peer } from "./peer.ts";

/** One row for each message, each in a separate transaction. */
export const bareSqlitePeer: Peer = {
  label: "bare SQLite insert",
  installation: null,
  turnsEachRound: { small: 50, large: 50 },
  async open(folder): Promise<Conversation> {
    const path = join(folder, "messages.db");
    const database = await openBareDatabase(path);
    database.exec("CREATE TABLE message (session TEXT, seq INTEGER, body TEXT, PRIMARY KEY (session, seq))");
    const insert = database.prepare("INSERT INTO message (session, seq, body) VALUES (?, ?, ?)");
    let seq = 0;
    const turn = async (index: number): Promise<void> => {
      for (const position of [index * 2, index * 2 + 1]) {
        insert.run("a-session", seq++, JSON.stringify(messageOf(position)));
      }
    };
    return {
      async fill(turns) {
        for (let index = 0; index < turns; index++) await turn(index);
      },
      turn,
      async settle() {
        database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
      },
      close: async () => database.close(),
      async readContext() {
        const opened = await openBareDatabase(path);
        const rows = opened.prepare("SELECT body FROM message WHERE session = ? ORDER BY seq").all("a-session");
        const messages = rows.map((row) => JSON.parse((row as { body: string }).body));
        opened.close();
        return messages.length;
      },
    };
  },
};
