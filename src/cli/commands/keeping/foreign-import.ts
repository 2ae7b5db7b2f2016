import { join } from "node:path";
import {
  type FollowedPath,
  type ForeignFormat,
  followFiles,
  foreignFormat,
  ImportCache,
  type ImportTarget,
  importFiles,
  importCacheName,
  type ImportStep,
} from "../../../interop/formats/index.ts";
import { ALL_PROGRAMS, findPrograms } from "../../../interop/formats/find-programs.ts";
import { skeinHome } from "../../../tree/home.ts";
import { type CommandContext, textOption } from "../../command.ts";
import { counted } from "../../terminal.ts";
import { LOCAL_USER } from "../../../lifecycle/access.ts";
import { momentOption } from "../../options/option-values.ts";

/** How many unreadable lines are listed. */
const LOST_NAMED_MAX = 20;

/** The result of an import. */
interface ImportSum {
  files: number;
  /** Files of no known program. */
  unknown: number;
  entries: number;
  readonly sessions: { new: number; grown: number; same: number; deleted: number };
  readonly lines: { mapped: number; kept: number; tooLarge: number; doubled: number; lost: number };
  readonly lost: { readonly file: string; readonly line: number; readonly reason: string }[];
  /** How many lines have an unknown kind, by kind. */
  readonly kinds: Record<string, number>;
}

/** The source of the import: a file or a directory (default: the program's own directory). A null format is detected from each file. */
export interface ImportSource {
  readonly format: ForeignFormat | null;
  readonly path?: string;
}

/** The programs on this machine that keep sessions in files. */
export async function allSources(): Promise<readonly ImportSource[]> {
  const found = (await findPrograms()).filter(({ name }) => ALL_PROGRAMS.includes(name));
  return found.map(({ name }) => ({ format: foreignFormat(name) }));
}

/** Imports the sessions of other programs. */
export async function importForeignFiles(context: CommandContext, sources: readonly ImportSource[]): Promise<number> {
  const { values, signal } = context;
  const userId = textOption(values, "user") ?? LOCAL_USER;
  const dryRun = values["dry-run"] === true;
  await using store = await context.openStore();
  const target: ImportTarget = { store, userId, dryRun };
  const cache = await ImportCache.open(join(skeinHome(), "imports", importCacheName(context.storeUrl, userId)));
  const since = momentOption(values, "since")?.getTime();
  const sum: ImportSum = {
    ...{ files: 0, unknown: 0, entries: 0, lost: [], kinds: {} },
    sessions: { new: 0, grown: 0, same: 0, deleted: 0 },
    lines: { mapped: 0, kept: 0, tooLarge: 0, doubled: 0, lost: 0 },
  };
  for (const source of sources) {
    const options = {
      ...{ ...source, signal, storeUrl: context.storeUrl },
      ...(since === undefined ? {} : { since }),
      ...(dryRun ? {} : { cache }),
    };
    const of = sources.length > 1 ? ` of ${source.format?.title}` : "";
    for await (const step of importFiles(target, options)) {
      addStep(sum, step);
      context.progress(
        `${step.number} of ${counted(step.files, "file", "files")}${of}, ${counted(sum.entries, "entry", "entries")}`,
      );
    }
  }
  if (!dryRun) await cache.save();
  if (context.json) context.printJson(sum);
  else printSum(context, sum, dryRun);
  const followed = sources.filter((source): source is FollowedPath => source.format !== null);
  if (values["follow"] === true && followed.length > 0 && !dryRun) await follow(context, target, followed);
  return sum.lines.lost > 0 ? 1 : 0;
}

/** Keeps importing what is added to the files, until the command is stopped. */
async function follow(
  { signal, print, fail, json, printJson }: CommandContext,
  target: ImportTarget,
  paths: readonly FollowedPath[],
): Promise<void> {
  if (!json) print("Following the files; press Ctrl-C to stop.");
  await followFiles(target, paths, {
    signal,
    onImported({ sessions }) {
      for (const { sessionId: session, added } of sessions.filter(({ outcome }) => outcome !== "same")) {
        if (json) printJson({ session, entries: added });
        else print(`${session}: ${counted(added, "entry", "entries")} imported since it is followed.`);
      }
    },
    onFailure: (error, file) => fail(`${file} could not be imported: ${(error as Error).message}`),
  });
}

function addStep(sum: ImportSum, { path, format, sessions, report }: ImportStep): void {
  sum.files++;
  if (format === null) sum.unknown++;
  for (const { outcome, added } of sessions) {
    sum.sessions[outcome]++;
    sum.entries += added;
  }
  for (const field of ["mapped", "kept", "tooLarge", "doubled", "lost"] as const) sum.lines[field] += report[field];
  for (const [kind, count] of report.unknownKinds) sum.kinds[kind] = (sum.kinds[kind] ?? 0) + count;
  for (const { line, reason } of report.lostLines) {
    if (sum.lost.length < LOST_NAMED_MAX) sum.lost.push({ file: path, line, reason });
  }
}

function printSum(
  { print, fail }: CommandContext,
  { files, unknown, entries, sessions, lines, lost, kinds }: ImportSum,
  dryRun: boolean,
): void {
  for (const { file, line, reason } of lost)
    fail(`${file}${line === 0 ? "" : `, line ${line},`} could not be read: ${reason}.`);
  const known = counted(files - unknown, "file", "files");
  const found = `${sessions.new} new, ${sessions.grown} with new entries, ${sessions.same} unchanged`;
  print(
    `${known}: ${counted(sessions.new + sessions.grown + sessions.same, "session", "sessions")} (${found}); ${counted(entries, "entry", "entries")} ${dryRun ? "would be added" : "added"}.`,
  );
  const read = [`${lines.mapped} became entries`, `${lines.kept} were kept unchanged`];
  if (lines.tooLarge > 0) read.push(`${lines.tooLarge} of these were too large for one entry`);
  if (lines.doubled > 0) read.push(`${lines.doubled} were duplicates`);
  if (lines.lost > 0) read.push(`${lines.lost} could not be read`);
  if (lines.mapped + lines.kept + lines.lost > 0) print(`Of the lines, ${read.join(", ")}.`);
  const strange = Object.entries(kinds).map(([kind, count]) => `${kind} (${count})`);
  if (strange.length > 0)
    print(
      `Lines of kinds that this version does not know, kept unchanged: ${strange.join(", ")}. Please report them, so that they can be supported.`,
    );
  if (sessions.deleted > 0)
    print(
      `${counted(sessions.deleted, "session was", "sessions were")} deleted here and not imported again; skein undelete restores a session.`,
    );
  if (unknown > 0) print(`${counted(unknown, "file is", "files are")} of no known program.`);
}
