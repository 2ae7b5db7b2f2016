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

/** Removes a person or a session for good. */
export const erase: Command = {
  name: "erase",
  summary: "Remove for good all of a user, or one session, also from the trash and from sessions of others.",
  details:
    "It says what it will do and asks first. Stopped in the middle, it goes on where it was when it is run again. What a fork of someone else begins with is kept there and named, unless --forks erase is given. The guide Erasing a person says what is beyond it.",
  arguments: [],
  options: {
    user: { value: "ID", what: "erase everything of this user" },
    session: { value: "ID", what: "erase this session, by its whole id" },
    forks: {
      value: "WHAT",
      choices: ["keep", "erase"],
      default: "keep",
      what: "what to do with words that forks of others begin with",
    },
    rewrite: {
      what: "write the store's files anew afterwards, so that none of them holds the words; locks others out",
    },
    workspace: { value: "DIRECTORY", what: "the server's --workspace, to remove the user's own directory below it" },
    "dry-run": { what: "only say what would be erased" },
    yes: { what: "do not ask" },
  },
  examples: [
    { line: "skein erase --user ada --dry-run", what: "see what would go" },
    { line: "skein erase --user ada --forks erase --rewrite --yes", what: "leave nothing of them, unasked" },
  ],
  json: {
    dryRun: "whether nothing was done",
    sessions: "how many sessions are gone",
    entries: "how many entries went with them or were taken out of sessions of others",
    checkpoints: "how many checkpoints are gone",
    snapshots: "how many of them held files",
    keptByForks: "forks of others that keep words: sessionId, forkId, userId",
    notCovered: "what is left for others to say or to remove: sessionId, reason, count",
    notRewritten: "why --rewrite could not be done, so that raw files may still hold words; else null",
  },
  store: "existing",
  async run(context) {
    const { values, signal } = context;
    const target = targetOf(context);
    const forks = textOption(values, "forks") === "erase" ? "erase" : "keep";
    await using store = await context.openStore();
    const manager = openManager(store);
    const onProgress = (progress: EraseProgress): void => context.progress(barOf(progress));
    const dryRun = values["dry-run"] === true;
    if (dryRun || values["yes"] !== true) {
      const planned = await manager.erase(target, { forks, dryRun: true, signal, onProgress });
      if (dryRun) return show(context, planned, true);
      if (!context.json) printReport(context, planned, true);
      const word = await context.confirm("Erase all of this for good?");
      if (word === null)
        throw new SessionError("INVALID_OPTION", "Nobody can be asked here; look with --dry-run, then give --yes.");
      if (!word) {
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
  const { sessions, entries, checkpoints, snapshots, keptByForks, notCovered } = report;
  const gone = [
    counted(sessions, "session", "sessions"),
    counted(entries, "entry", "entries"),
    counted(checkpoints, "checkpoint", "checkpoints"),
    counted(snapshots, "snapshot", "snapshots"),
  ].join(", ");
  print(`${dryRun ? "would be erased" : "erased"}: ${gone}.`);
  for (const { sessionId, forkId, userId } of keptByForks)
    print(`kept: words of ${sessionId} in ${forkId}, a fork of ${userId ?? "nobody"}.`);
  for (const { sessionId, reason, count } of notCovered)
    print(
      reason === "snapshot"
        ? `not covered: ${counted(count, "snapshot", "snapshots")} of ${sessionId}, which cannot be freed from here.`
        : `not covered: ${counted(count, "entry", "entries")} of ${sessionId}, in words of others.`,
    );
  if (report.notRewritten !== undefined) print(`raw files may still hold words: ${report.notRewritten}`);
}

function barOf({ step, sessionsDone, sessionsTotal }: EraseProgress): string {
  if (step !== "erasing") return step === "looking" ? `${sessionsDone} sessions looked at` : "writing the store anew";
  const filled = Math.round((BAR_CHARACTERS * sessionsDone) / Math.max(1, sessionsTotal));
  return `[${"#".repeat(filled)}${"-".repeat(BAR_CHARACTERS - filled)}] ${sessionsDone} of ${sessionsTotal} sessions erased`;
}

/** Writes what is held about a user to a file. */
export const exportUser: Command = {
  name: "export-user",
  summary: "Write what is held about a user as one archive (tar), the trash included.",
  details:
    "Each session is a file that skein import takes; about.json says which is which. What they said in sessions of others is below elsewhere/.",
  arguments: [{ name: "user", what: "the id of the user" }],
  options: {
    output: { value: "FILE", what: "the file to write" },
    force: { what: "replace the file if it is there" },
    create: CREATE_OPTION,
  },
  examples: [{ line: "skein export-user ada --output ada.tar", what: "hand someone what is theirs" }],
  json: { user: "the id of the user", output: "the file", bytes: "how large it is" },
  store: "existing",
  readsOnly: true,
  async run(context) {
    const { values } = context;
    const user = context.positionals[0] as string;
    const output = textOption(values, "output");
    if (output === undefined || output === "")
      throw new SessionError("INVALID_OPTION", "export-user needs the name of a file with --output.");
    await using store = await context.openStore();
    const bytes = await writeNewFile(output, openManager(store).exportUser(user), writingOf(values));
    if (context.json) context.printJson({ user, output, bytes });
    else context.print(`${output}: ${bytes} bytes.`);
    return 0;
  },
};
