import { access, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { claudeCodeFiles } from "./claude-code/claude-code-files.ts";
import { codexFiles } from "./codex/codex-files.ts";
import type { FormatName, ProgramFiles } from "./foreign-format.ts";
import { opencodeFiles } from "./opencode/opencode-files.ts";
import { openrathFiles } from "./openrath/openrath-files.ts";
import { piFiles } from "./pi/pi-files.ts";

/** Programs that leave sessions on a machine. */
const PROGRAMS: readonly ProgramFiles[] = [claudeCodeFiles, codexFiles, opencodeFiles, openrathFiles, piFiles];

/** No more files of a program are counted, and no deeper directories are read. */
const FILES_MAX = 100_000;
const DEPTH_MAX = 12;
const STATS_AT_ONCE = 64;

/** The session files of a program on this machine. */
export interface FoundProgram {
  readonly name: FormatName;
  /** The program's display name. */
  readonly title: string;
  /** The number of session files; null if the program keeps its sessions in a database. */
  readonly sessions: number | null;
  /** When the last session changed; null without `dates`. */
  readonly latestAt: string | null;
  /** The command that exports a session from the program's database; null if it keeps files. */
  readonly exportCommand: string | null;
}

/** The programs whose sessions `all` imports: those that keep files. */
export const ALL_PROGRAMS: readonly FormatName[] = PROGRAMS.filter(({ database }) => database === undefined).map(
  ({ name }) => name,
);

/**
 * Finds the programs that have sessions on this machine, by the names of files alone: no file is opened. With `dates`, the time of the last
 * change of each file is looked up, too. Links are not followed.
 */
export async function findPrograms({
  dates = false,
}: {
  readonly dates?: boolean;
} = {}): Promise<readonly FoundProgram[]> {
  const found = await Promise.all(PROGRAMS.map((program) => findProgram(program, dates)));
  return found.filter((program) => program !== null);
}

async function findProgram(program: ProgramFiles, dates: boolean): Promise<FoundProgram | null> {
  const { name, title, database } = program;
  if (database !== undefined) {
    const path = database.path();
    if (
      !(await access(path).then(
        () => true,
        () => false,
      ))
    )
      return null;
    const latestAt = dates ? await latestOf([path]) : null;
    return { name, title, sessions: null, latestAt, exportCommand: database.exportCommand };
  }
  const files = await filesBelow(program);
  if (files.length === 0) return null;
  return { name, title, sessions: files.length, latestAt: dates ? await latestOf(files) : null, exportCommand: null };
}

async function filesBelow({ home, isSessionFile }: ProgramFiles): Promise<string[]> {
  const files: string[] = [];
  let level = [home()];
  for (let depth = 0; depth < DEPTH_MAX && level.length > 0; depth++) {
    const below: string[] = [];
    for (const directory of level) {
      // A program that was never used has no directory, and one that cannot be read has nothing to offer.
      for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
        const path = join(directory, entry.name);
        if (entry.isDirectory()) below.push(path);
        else if (entry.isFile() && isSessionFile(path) && files.push(path) >= FILES_MAX) return files;
      }
    }
    level = below;
  }
  return files;
}

async function latestOf(paths: readonly string[]): Promise<string | null> {
  let latest = 0;
  for (let from = 0; from < paths.length; from += STATS_AT_ONCE) {
    const found = await Promise.all(
      paths.slice(from, from + STATS_AT_ONCE).map((path) => stat(path).catch(() => null)),
    );
    for (const each of found) latest = Math.max(latest, each?.mtimeMs ?? 0);
  }
  return latest === 0 ? null : new Date(latest).toISOString();
}
