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

/** The option for the directory of a session's files. */
const WORKSPACE_OPTION: CommandOption = {
  value: "DIRECTORY",
  what: "the directory of its files (default: where the session's tools work)",
};

/**
 * The directory of a session's files, from `--files` and `--workspace`; null without `--files`.
 *
 * @throws {SessionError} `INVALID_OPTION` if the directory is missing, or if `--workspace` is given without `--files`.
 */
async function filesPlace(values: CommandValues): Promise<SessionFilesOptions["placeOf"] | null> {
  const given = textOption(values, "workspace");
  if (values["files"] !== true) {
    if (given === undefined) return null;
    throw new SessionError("INVALID_OPTION", "--workspace is only used together with --files; add --files.");
  }
  const directory = given === undefined ? null : await existingWorkspaceAt(given, "--workspace");
  return ({ sandbox }) => (directory === null ? sandbox : { backend: "local", spec: directory });
}

/** Makes a checkpoint. */
export const checkpoint: Command = {
  name: "checkpoint",
  summary: "Make a checkpoint of a session, to come back to it.",
  arguments: [SESSION_ARGUMENT],
  options: {
    note: { value: "TEXT", what: "a note that is kept with it" },
    files: { what: "also save the files of its directory" },
    workspace: WORKSPACE_OPTION,
  },
  examples: [
    { line: 'skein checkpoint last --note "tests are green"', what: "make a checkpoint of the latest session" },
    { line: "skein checkpoint last --files", what: "and of its files" },
  ],
  json: {
    checkpoint:
      "the checkpoint: id, sessionId, version, leafId, createdAt, parentCheckpointId, metadata, and sandboxSnapshot if it holds files",
  },
  store: "existing",
  async run(context) {
    const note = textOption(context.values, "note");
    const placeOf = await filesPlace(context.values);
    await using store = await context.openStore();
    await using manager = await openManager(store);
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
  summary: "List the checkpoints of a session, oldest first.",
  arguments: [SESSION_ARGUMENT],
  options: {},
  examples: [{ line: "skein checkpoints last", what: "the checkpoints of the latest session" }],
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
  summary: "Go back to a checkpoint: move the session's leaf there. Nothing is deleted.",
  details:
    "Without --files, no file is changed. With --files, the files of the session's directory are replaced by those of the checkpoint. The current files are saved in a new checkpoint first, whose id is printed.",
  arguments: [{ name: "checkpoint", what: "its id, from skein checkpoints" }],
  options: { files: { what: "also restore its files" }, workspace: WORKSPACE_OPTION },
  examples: [
    { line: "skein restore 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11", what: "continue from there" },
    { line: "skein restore 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11 --files", what: "and with its files" },
  ],
  json: {
    sessionId: "the session's id",
    leafId: "the parent of the next entry, or null",
    turnCount: "the number of turns on the path",
    version: "the number of entries in the log",
    kept: "the new checkpoint with the files from before, as in checkpoint; null without --files",
  },
  store: "existing",
  async run(context) {
    const placeOf = await filesPlace(context.values);
    await using store = await context.openStore();
    await using manager = await openManager(store);
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
      `Session ${sessionId} is back at ${counted(turnCount, "turn", "turns")}; its log has ${counted(version, "entry", "entries")}.`,
    );
    if (kept !== null) context.print(`Its files were restored; checkpoint ${kept.id} has the files from before.`);
    return 0;
  },
};
