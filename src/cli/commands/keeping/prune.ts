import { counted } from "../../terminal.ts";
import { applyRetention, type RetentionOptions, type RetentionReport } from "../../../lifecycle/retention.ts";
import { SessionError, type SessionStatus, type SessionStore } from "../../../index.ts";
import { CREATE_OPTION } from "../../parse-command-line.ts";
import { type Command, type CommandContext, textOption, textsOption } from "../../command.ts";
import { ageOption, countOption, momentOption } from "../../options/option-values.ts";
import { STATUS_OPTION } from "../reading/list.ts";

/** Later than any deletion: also later than those of this command, and those of a server whose clock is ahead. */
const END_OF_TIME = new Date("9999-12-31T23:59:59.999Z");

/** Deletes and purges sessions by their age. */
export const prune: Command = {
  name: "prune",
  summary: "Delete sessions that have not been used for a time, and permanently remove deleted ones.",
  details:
    "skein undelete restores a deleted session until --purge removes it. Sessions with an active run are skipped, and entries that forks share are kept.",
  arguments: [],
  options: {
    "older-than": { value: "AGE", what: "delete sessions without a new entry for this long, as in 30d or 12h" },
    erase: {
      value: "AGE",
      what: "erase sessions without a new entry for this long, as skein erase does; they cannot be restored",
    },
    status: STATUS_OPTION,
    user: { value: "ID", what: "only sessions of this user" },
    archive: { value: "URL", what: "copy each session to this store first" },
    purge: {
      value: "AGE",
      what: "permanently remove sessions deleted this long ago, as in 7d; 0d for all, including those deleted by this command",
    },
    vacuum: { what: "after --purge, return the space to the file system, if the store can" },
    limit: { value: "N", what: "delete at most this many sessions" },
    "dry-run": { what: "only print what would be deleted" },
    create: CREATE_OPTION,
  },
  examples: [
    { line: "skein prune --older-than 30d --status closed --dry-run", what: "see what would be deleted" },
    {
      line: "skein prune --older-than 90d --archive jsonl:./archive --purge 7d",
      what: "keep a copy, and free the space a week later",
    },
  ],
  json: {
    dryRun: "true if nothing was deleted",
    deleted: "the ids of the sessions that were deleted, or would be",
    erased: "the ids of the sessions that were erased, or would be",
    archived: "the number of sessions copied to the archive",
    purged: "the number of deleted sessions that were permanently removed",
    vacuumed: "true if the space was returned",
    failures: "sessions that could not be deleted: sessionId, code, message",
  },
  store: "existing",
  async run(context) {
    const options = optionsOf(context);
    const archiveUrl = textOption(context.values, "archive");
    if (archiveUrl === context.storeUrl) {
      throw new SessionError("INVALID_OPTION", "--archive names the store itself; name another one.");
    }
    await using store = await context.openStore();
    await using archive = archiveUrl === undefined ? null : await context.openNamed(archiveUrl, { acts: false });
    const report = await applyRetention(store, { ...options, ...archiveOf(archive) });
    const failures = report.failures.map(({ sessionId, error }) => ({
      sessionId,
      code: error.code,
      message: error.message,
    }));
    const dryRun = options.dryRun === true;
    if (context.json) context.printJson({ dryRun, ...report, failures });
    else print(context, report, dryRun);
    return failures.length === 0 ? 0 : 1;
  },
};

function archiveOf(archive: SessionStore | null): Pick<RetentionOptions, "archive"> {
  return archive === null ? {} : { archive };
}

function optionsOf({ values, signal, progress }: CommandContext): RetentionOptions {
  const [olderThan, erase] = [momentOption(values, "older-than"), momentOption(values, "erase")];
  const purge = ageOption(values, "purge") === 0 ? END_OF_TIME : momentOption(values, "purge");
  const [userId, limit] = [textOption(values, "user"), countOption(values, "limit")];
  const status = textsOption(values, "status") as readonly SessionStatus[];
  if (olderThan === undefined && purge === undefined && erase === undefined) {
    throw new SessionError(
      "INVALID_OPTION",
      "prune needs at least one of --older-than, --erase and --purge; see skein prune --help.",
    );
  }
  if (
    olderThan === undefined &&
    erase === undefined &&
    (status.length > 0 || userId !== undefined || limit !== undefined)
  ) {
    throw new SessionError(
      "INVALID_OPTION",
      "--status, --user and --limit restrict --older-than and --erase; give one of these two as well.",
    );
  }
  const which = { ...(status.length > 0 && { status }), ...(userId !== undefined && { userId }) };
  return {
    signal,
    dryRun: values["dry-run"] === true,
    vacuum: values["vacuum"] === true,
    onProgress: ({ looked, deleted }) => progress(`${looked} sessions examined, ${deleted} deleted`),
    ...(purge !== undefined && { purgeAfter: { olderThan: purge } }),
    ...(limit !== undefined && { limit }),
    ...(olderThan !== undefined && { deleteAfter: { olderThan, ...which } }),
    ...(erase !== undefined && { eraseAfter: { olderThan: erase, ...which } }),
  };
}

function print({ print: line }: CommandContext, report: RetentionReport, dryRun: boolean): void {
  for (const id of report.deleted) line(`${dryRun ? "would be deleted" : "deleted"}: ${id}`);
  for (const id of report.erased) line(`${dryRun ? "would be erased" : "erased"}: ${id}`);
  for (const { sessionId, error } of report.failures) line(`not deleted: ${sessionId}: ${error.message}`);
  const [count, erased] = [report.deleted.length, report.erased.length];
  if (erased > 0) line(`${counted(erased, "session", "sessions")} ${dryRun ? "would be erased" : "erased"}.`);
  if (dryRun) line(`${counted(count, "session", "sessions")} would be deleted.`);
  else
    line(
      `${counted(count, "session was", "sessions were")} deleted, ${report.archived} of them archived; ${counted(report.purged, "was", "were")} permanently removed.`,
    );
}
