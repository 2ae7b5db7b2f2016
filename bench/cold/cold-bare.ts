import { appendFileSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openBareDatabase } from "../bare-database.ts";
import { messageOf } from "../message-of.ts";
import type { OpenCold } from "./cold-session.ts";

/** One line for each message, written with `appendFileSync`; a fork is a copy. */
export const openBareFile: OpenCold = async (folder) => {
  const path = join(folder, "messages.jsonl");
  return {
    key: path,
    async append(messages) {
      for (let index = 0; index < messages; index++) appendFileSync(path, `${JSON.stringify(messageOf(index))}\n`);
    },
    async context() {
      const lines = readFileSync(path, "utf8").split("\n");
      return lines.filter((line) => line !== "").map((line) => JSON.parse(line)).length;
    },
    fork: async () => copyFileSync(path, `${path}.fork`),
    async close() {},
  };
};

/** One row for each message, each in a separate transaction; a fork copies the rows. */
export const openBareSqlite: OpenCold = async (folder) => {
  const database = await openBareDatabase(join(folder, "messages.db"));
  database.exec(
    "CREATE TABLE IF NOT EXISTS message (session TEXT, seq INTEGER, body TEXT, PRIMARY KEY (session, seq))",
  );
  return {
    key: "a-session",
    async append(messages) {
      const insert = database.prepare("INSERT INTO message (session, seq, body) VALUES (?, ?, ?)");
      for (let index = 0; index < messages; index++) insert.run("a-session", index, JSON.stringify(messageOf(index)));
    },
    async context() {
      const rows = database.prepare("SELECT body FROM message WHERE session = ? ORDER BY seq").all("a-session");
      return rows.map((row) => JSON.parse((row as { body: string }).body)).length;
    },
    async fork() {
      database.exec("INSERT INTO message SELECT 'a-fork', seq, body FROM message WHERE session = 'a-session'");
    },
    close: async () => database.close(),
  };
};
