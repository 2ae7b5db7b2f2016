import { counted } from "../../terminal.ts";
import { SessionError } from "../../../index.ts";
import { type Command, textOption } from "../../command.ts";
import { openManager } from "../../open-manager.ts";
import { ENTRY_NAMES, findEntry, findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Forks a session. */
export const fork: Command = {
  name: "fork",
  summary: "Create a new session that begins with the entries of another one.",
  arguments: [SESSION_ARGUMENT, { name: "branch", optional: true, what: 'the name of the branch (default "fork")' }],
  options: {
    at: { value: "ENTRY", what: `begin with the entries up to this one: ${ENTRY_NAMES}` },
    checkpoint: { value: "ID", what: "begin with the entries up to this checkpoint" },
  },
  examples: [
    { line: "skein fork last other-plan", what: "continue in two directions" },
    {
      line: "skein fork last --checkpoint 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11",
      what: "continue from an earlier point",
    },
  ],
  json: {
    sessionId: "the new session's id",
    parentSessionId: "the id of the session that it was forked from",
    branchName: "the name of the branch",
    version: "the number of entries that it begins with",
  },
  store: "existing",
  async run(context) {
    const [reference = "", branch = "fork"] = context.positionals;
    const [at, fromCheckpoint] = [textOption(context.values, "at"), textOption(context.values, "checkpoint")];
    if (at !== undefined && fromCheckpoint !== undefined) {
      throw new SessionError("INVALID_OPTION", "Give either --at or --checkpoint, not both.");
    }
    await using store = await context.openStore();
    await using manager = await openManager(store);
    const head = await findSession(store, reference);
    const { sessionId, parentSessionId, branchName, version } = await manager.fork(head.header.id, branch, {
      turns: false,
      ...(at !== undefined && { at: (await findEntry(store, head, at)).id }),
      ...(fromCheckpoint !== undefined && { fromCheckpoint }),
    });
    if (context.json) context.printJson({ sessionId, parentSessionId, branchName, version });
    else
      context.print(
        `Session ${sessionId} begins with ${counted(version, "entry", "entries")} of session ${head.header.id}.`,
      );
    return 0;
  },
};
