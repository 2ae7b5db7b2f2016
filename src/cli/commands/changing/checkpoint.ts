import { type Command, textOption, type CommandOption, type CommandValues } from "../../command.ts";
import {
  checkpointWithFiles,
  type SessionFilesOptions,
  restoreWithFiles,
} from "../../../lifecycle/checkpoints/session-files.ts";
import { openManager } from "../../open-manager.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { SessionError } from "../../../index.ts";
import { existingWorkspaceAt } from "../../options/workspace-option.ts";
import { tableLines } from "../../table.ts";
import { printable, counted } from "../../terminal.ts";

/** The option that says where the files of a session are. */
const WORKSPACE_OPTION: CommandOption = {
  value: "DIRECTORY",
  what: "where its files are (default: where the session's tools act)",
};

/**
 * Where the files of a session are, as `--files` and `--workspace` say; null where files are left out.
 *
 * @throws {SessionError} `INVALID_OPTION` for a directory that is not there, or that nobody asked for files of.
 */
async function filesPlace(values: CommandValues): Promise<SessionFilesOptions["placeOf"] | null> {
  const given = textOption(values, "workspace");
  if (values["files"] !== true) {
    if (given === undefined) return null;
    throw new SessionError("INVALID_OPTION", "--workspace says where the files are; add --files.");
  }
  const directory = given === undefined ? null : await existingWorkspaceAt(given, "--workspace");
  return ({ sandbox }) => (directory === null ? sandbox : { backend: "local", spec: directory });
}

/** Makes a checkpoint. */
export const checkpoint: Command = {
  name: "checkpoint",
  summary: "Mark where a session stands, to come back to it.",
  arguments: [SESSION_ARGUMENT],
  options: {
    note: { value: "TEXT", what: "what to remember about it" },
    files: { what: "hold the files of its directory, too" },
    workspace: WORKSPACE_OPTION,
  },
  examples: [
    { line: 'skein checkpoint last --note "tests are green"', what: "mark where the latest session stands" },
    { line: "skein checkpoint last --files", what: "and hold its files as they are" },
  ],
  json: {
    checkpoint:
      "the checkpoint: id, sessionId, version, leafId, createdAt, parentCheckpointId, metadata, and sandboxSnapshot where it holds files",
  },
  store: "existing",
  async run(context) {
    const note = textOption(context.values, "note");
    const placeOf = await filesPlace(context.values);
    await using store = await context.openStore();
    await using manager = openManager(store);
    const { header } = await findSession(store, context.positionals[0] as string);
    const init = note === undefined ? {} : { metadata: { note } };
    const made = await (placeOf === null
      ? manager.checkpoint(header.id, init)
      : checkpointWithFiles(manager, header.id, { ...init, placeOf }));
    const files = placeOf === null ? "" : ", with its files";
    if (context.json) context.printJson({ checkpoint: made });
    else context.print(`Checkpoint ${made.id}: session ${header.id} at version ${made.version}${files}.`);
    return 0;
  },
};

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
  readsOnly: true,
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

/** Goes back to a checkpoint. */
export const restore: Command = {
  name: "restore",
  summary: "Go back to a checkpoint: the session's leaf moves there, and nothing is erased.",
  details:
    "Files stay as they are. With --files, those of the session's directory become what the checkpoint holds: what is there now is held in another checkpoint first, whose id is told.",
  arguments: [{ name: "checkpoint", what: "its id, from skein checkpoints" }],
  options: { files: { what: "bring the files back that it holds, too" }, workspace: WORKSPACE_OPTION },
  examples: [
    { line: "skein restore 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11", what: "go on from there" },
    { line: "skein restore 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11 --files", what: "with the files of then" },
  ],
  json: {
    sessionId: "the session's id",
    leafId: "the entry that the next one hangs on now, or null",
    turnCount: "how many turns the path has now",
    version: "how many entries the log has now",
    kept: "the checkpoint that holds the files which were there before, as in checkpoint; null without --files",
  },
  store: "existing",
  async run(context) {
    const placeOf = await filesPlace(context.values);
    await using store = await context.openStore();
    await using manager = openManager(store);
    const id = context.positionals[0] as string;
    const { state, kept } =
      placeOf === null
        ? { state: await manager.restore(id, { turns: false }), kept: null }
        : await restoreWithFiles(manager, id, { placeOf });
    const { sessionId, leafId, turnCount, version } = state;
    if (context.json) {
      context.printJson({ sessionId, leafId, turnCount, version, kept });
      return 0;
    }
    context.print(
      `Session ${sessionId} stands after ${counted(turnCount, "turn", "turns")} again; its log has ${counted(version, "entry", "entries")}.`,
    );
    if (kept !== null) context.print(`Its files are those of then; checkpoint ${kept.id} holds what they were.`);
    return 0;
  },
};
