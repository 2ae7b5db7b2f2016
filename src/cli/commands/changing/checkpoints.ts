import type { Command } from "../../command.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { tableLines } from "../../table.ts";
import { printable } from "../../terminal.ts";

const COLUMNS = [
  { title: "ID" },
  { title: "MADE" },
  { title: "VERSION", right: true },
  { title: "FILES" },
  { title: "NOTE" },
];

/** Lists the checkpoints of a session. */
export const checkpoints: Command = {
  name: "checkpoints",
  summary: "List the checkpoints of a session, the oldest first.",
  arguments: [SESSION_ARGUMENT],
  options: {},
  examples: [{ line: "skein checkpoints last", what: "where the latest session can go back to" }],
  json: { sessionId: "the session's id", checkpoints: "the checkpoints, as in checkpoint" },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    const { header } = await findSession(store, context.positionals[0] as string);
    const found = await store.listCheckpoints(header.id);
    if (context.json) {
      context.printJson({ sessionId: header.id, checkpoints: found });
      return 0;
    }
    const rows = found.map(({ id, createdAt, version, sandboxSnapshot, metadata }) => {
      const { note } = metadata;
      const files = sandboxSnapshot === undefined ? "no" : "yes";
      return [
        printable(id, 512),
        createdAt,
        String(version),
        files,
        typeof note === "string" ? printable(note, 60) : "",
      ];
    });
    for (const line of tableLines(COLUMNS, rows)) context.terminal.line(line);
    return 0;
  },
};
