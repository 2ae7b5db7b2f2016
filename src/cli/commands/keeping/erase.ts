import { join } from "node:path";
import { removeUserDirectory, userDirectoryName } from "../../../workers/user-places.ts";
import { counted } from "../../terminal.ts";
import type { EraseProgress, EraseReport, EraseTarget } from "../../../lifecycle/erase/erase-report.ts";
import { SessionError } from "../../../index.ts";
import { CREATE_OPTION } from "../../parse-command-line.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";
import { openManager } from "../../open-manager.ts";
import { writeNewFile, writingOf } from "./write-new-file.ts";

const BAR_CHARACTERS = 20;

/** Erases a user or a session. */
export const erase: Command = {
  name: "erase",
  summary: "Permanently remove everything of a user, or one session: also from the trash and from sessions of others.",
  details:
    "It prints what it will erase and asks first. If it is interrupted, run it again to continue. Entries that a fork of another user begins with are kept there and listed, unless --forks erase is given. What it cannot erase is in the guide Erasing a person.",
  arguments: [],
  options: {
    user: { value: "ID", what: "erase everything of this user" },
    session: { value: "ID", what: "erase this session, by its full id" },
    forks: {
      value: "WHAT",
      choices: ["keep", "erase"],
      default: "keep",
      what: "what to do with entries that forks of other users begin with",
    },
    rewrite: {
      what: "rewrite the store's files afterwards, so that no file holds erased text; locks the store meanwhile",
    },
    workspace: { value: "DIRECTORY", what: "the server's --workspace, to remove the user's directory below it" },
    "dry-run": { what: "only print what would be erased" },
    yes: { what: "do not ask" },
  },
  examples: [
    { line: "skein erase --user ada --dry-run", what: "see what would be erased" },
    { line: "skein erase --user ada --forks erase --rewrite --yes", what: "erase everything of a user without asking" },
  ],
  json: {
    dryRun: "true if nothing was erased",
    sessions: "the number of erased sessions",
    entries: "the number of entries erased with them or in sessions of others",
    checkpoints: "the number of erased checkpoints",
    snapshots: "the number of erased file snapshots",
    blobs: "the number of images and files that were removed, because nothing refers to them any more",
    keptByForks: "forks of other users that keep entries: sessionId, forkId, userId",
    notCovered: "what was not erased: sessionId, reason, count",
    notRewritten: "why --rewrite failed, so that files may still hold erased text; else null",
  },
  store: "existing",
  async run(context) {
    const { values, signal } = context;
    const target = targetOf(context);
    const forks = textOption(values, "forks") === "erase" ? "erase" : "keep";
    await using store = await context.openStore();
    const manager = await openManager(store);
    const onProgress = (progress: EraseProgress): void => context.progress(barOf(progress));
    const dryRun = values["dry-run"] === true;
    if (dryRun || values["yes"] !== true) {
      const planned = await manager.erase(target, { forks, dryRun: true, signal, onProgress });
      if (dryRun) return show(context, planned, true);
      if (!context.json) printReport(context, planned, true);
      const agreed = await context.confirm("Erase all of this permanently?");
      if (agreed === null)
        throw new SessionError("INVALID_OPTION", "No person can be asked here; check with --dry-run, then give --yes.");
      if (!agreed) {
        context.fail("Nothing was erased.");
        return 1;
      }
    }
    const rewrite = values["rewrite"] === true;
    const report = await manager.erase(target, { forks, rewrite, signal, onProgress });
    const workspace = textOption(values, "workspace");
    if (workspace !== undefined && target.userId !== undefined) {
      const place = { backend: "local", spec: { workingDir: join(workspace, userDirectoryName(target.userId)) } };
      await removeUserDirectory(place, target.userId);
    }
    return show(context, report, false);
  },
};

function targetOf({ values }: CommandContext): EraseTarget {
  const [userId, sessionId] = [textOption(values, "user"), textOption(values, "session")];
  if (userId !== undefined && sessionId === undefined) return { userId };
  if (sessionId !== undefined && userId === undefined) return { sessionId };
  throw new SessionError("INVALID_OPTION", "erase needs either --user or --session.");
}

function show(context: CommandContext, report: EraseReport, dryRun: boolean): number {
  if (context.json) context.printJson({ dryRun, notRewritten: null, ...report });
  else printReport(context, report, dryRun);
  return report.notRewritten === undefined ? 0 : 1;
}

function printReport({ print }: CommandContext, report: EraseReport, dryRun: boolean): void {
  const { sessions, entries, checkpoints, snapshots, blobs, keptByForks, notCovered } = report;
  const gone = [
    counted(sessions, "session", "sessions"),
    counted(entries, "entry", "entries"),
    counted(checkpoints, "checkpoint", "checkpoints"),
    counted(snapshots, "snapshot", "snapshots"),
    ...(blobs === 0 ? [] : [counted(blobs, "image or file", "images and files")]),
  ].join(", ");
  print(`${dryRun ? "would be erased" : "erased"}: ${gone}.`);
  for (const { sessionId, forkId, userId } of keptByForks)
    print(`kept: entries of ${sessionId} in ${forkId}, a fork of ${userId ?? "no user"}.`);
  for (const { sessionId, reason, count } of notCovered)
    print(
      reason === "snapshot"
        ? `not covered: ${counted(count, "snapshot", "snapshots")} of ${sessionId}, which cannot be removed from here.`
        : reason === "blobs"
          ? `not covered: images and files of ${sessionId}, as a session cannot be read that may refer to them.`
          : `not covered: ${counted(count, "entry", "entries")} of ${sessionId}, quoted by others.`,
    );
  if (report.notRewritten !== undefined) print(`files may still hold erased text: ${report.notRewritten}`);
}

function barOf({ step, sessionsDone, sessionsTotal }: EraseProgress): string {
  if (step !== "erasing") return step === "looking" ? `${sessionsDone} sessions examined` : "rewriting the store";
  const filled = Math.round((BAR_CHARACTERS * sessionsDone) / Math.max(1, sessionsTotal));
  return `[${"#".repeat(filled)}${"-".repeat(BAR_CHARACTERS - filled)}] ${sessionsDone} of ${sessionsTotal} sessions erased`;
}

/** Writes all data about a user to a file. */
export const exportUser: Command = {
  name: "export-user",
  summary: "Write all data of a user to an archive (tar), including deleted sessions.",
  details:
    "Each session is a file that skein import accepts; about.json lists them. The user's messages in sessions of others are below elsewhere/.",
  arguments: [{ name: "user", what: "the id of the user" }],
  options: {
    output: { value: "FILE", what: "the file to write" },
    force: { what: "replace the file if it exists" },
    create: CREATE_OPTION,
  },
  examples: [{ line: "skein export-user ada --output ada.tar", what: "give a user a copy of their data" }],
  json: { user: "the id of the user", output: "the file", bytes: "its size" },
  store: "existing",
  readsOnly: true,
  async run(context) {
    const { values } = context;
    const user = context.positionals[0] as string;
    const output = textOption(values, "output");
    if (output === undefined || output === "")
      throw new SessionError("INVALID_OPTION", "export-user needs the name of a file with --output.");
    await using store = await context.openStore();
    const bytes = await writeNewFile(output, (await openManager(store)).exportUser(user), writingOf(values));
    if (context.json) context.printJson({ user, output, bytes });
    else context.print(`${output}: ${bytes} bytes.`);
    return 0;
  },
};
