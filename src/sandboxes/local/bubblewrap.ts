import { lstatSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { isIn } from "./follow-links.ts";
import { findProgram } from "./find-program.ts";
import { type HostView, viewOfHost } from "./host-view.ts";
import { RunningCommand } from "./running-command.ts";

const CHECK_MS_MAX = 10_000;
const RESOLVER = "/etc/resolv.conf";
/** The programs that were tried out and work. One that does not is tried again: it may have been allowed meanwhile. */
const working = new Map<string, Bubblewrap>();

/** The program that isolates commands. */
export interface Bubblewrap {
  readonly program: string;
  /** Whether it can limit the size of what is kept in memory; versions before 0.7 cannot. */
  readonly sizes: boolean;
}

/** What an isolated command may reach. */
export interface Isolation {
  readonly root: string;
  /** Paths beside the root that may be written, too. */
  readonly allowed: readonly string[];
  /** Paths in the root and beside it that are not to be found. */
  readonly hidden: readonly string[];
  readonly network: boolean;
  /** How much each private directory can hold. */
  readonly sizeBytes: number;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The bubblewrap of this machine.
 *
 * @throws {SandboxError} `unsupported` when there is none, or the system does not let it work.
 */
export async function findBubblewrap(env: Readonly<Record<string, string>>): Promise<Bubblewrap> {
  const program = await findProgram("bwrap", env["PATH"] ?? "", "/");
  if (program === null) {
    throw new SandboxError(
      "unsupported",
      `Isolation needs the program "bwrap"; install the package bubblewrap (apt-get install bubblewrap).`,
    );
  }
  const known = working.get(program);
  if (known !== undefined) return known;
  const found = { program, sizes: true };
  const problem = await tryOut(found, env);
  const older = problem === null ? null : { program, sizes: false };
  if (older !== null && (await tryOut(older, env)) !== null) {
    throw new SandboxError(
      "unsupported",
      `Isolation with bubblewrap does not work on this machine (${problem}); allow user namespaces, or run as root.`,
    );
  }
  working.set(program, older ?? found);
  return older ?? found;
}

/**
 * The arguments that put a program into namespaces of its own.
 *
 * It sees the system for reading, the programs of its `PATH`, the root and the allowed paths for writing, and private
 * `/tmp`, `/run`, `/dev`, `/proc` and homes. What the system keeps for some accounts is covered, and nothing else is
 * there. It has no capabilities: root could remount for writing what is shown for reading.
 */
export async function bubblewrapArguments(
  bubblewrap: Bubblewrap,
  isolation: Isolation,
  cwd: string,
): Promise<string[]> {
  const { root, allowed, hidden, network, sizeBytes, env } = isolation;
  const view = viewOfHost(env, [root, ...hidden]);
  const empty = (path: string): string[] => [...(bubblewrap.sizes ? ["--size", `${sizeBytes}`] : []), "--tmpfs", path];
  const writable = [root, ...allowed].sort(byLength);
  return [
    ...["--unshare-all", ...(network ? ["--share-net"] : []), "--die-with-parent", "--new-session"],
    ...["--cap-drop", "ALL"],
    ...view.links.flatMap(({ path, target }) => ["--symlink", target, path]),
    ...view.shown.flatMap((path) => ["--ro-bind", path, path]),
    ...view.covered.flatMap(cover),
    // A socket can be written to on a read-only file system too, and the host's services keep theirs in /run.
    ...["/tmp", "/var/tmp", "/run", ...view.homes].flatMap(empty),
    ...["--ro-bind-try", "/run/current-system", "/run/current-system"],
    ...view.programs.flatMap(({ source, path }) => ["--ro-bind-try", source, path]),
    ...(network ? await resolverArguments(view) : []),
    ...writable.flatMap((path) => [path === root ? "--bind" : "--bind-try", path, path]),
    ...hide(hidden, writable),
    ...["--dev", "/dev", "--proc", "/proc"],
    ...(writable.includes("/") ? [] : ["--remount-ro", "/"]),
    ...["--chdir", cwd, "--"],
  ];
}

/** Puts something empty over a file or a directory, where there still is one: a missing one could not be covered. */
function cover(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isDirectory() ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path];
}

/**
 * Covers paths among files that the command may change. The directories above them are mounted on themselves, since only
 * what is a mount cannot be renamed: the next command would find it under the new name.
 */
function hide(paths: readonly string[], writable: readonly string[]): string[] {
  const covers = paths.map(cover);
  const above = new Set<string>();
  for (const [index, path] of paths.entries()) {
    if (covers[index]?.length === 0) continue;
    const inside = (at: string): boolean => writable.some((each) => at !== each && isIn(at, each));
    for (let at = dirname(path); inside(at); at = dirname(at)) above.add(at);
  }
  // All of them first: a mount of one shows again what was covered in it.
  return [...[...above].sort(byLength).flatMap((each) => ["--bind", each, each]), ...covers.flat()];
}

/** Shows where names are looked up, which is often a link into `/run`. */
async function resolverArguments({ shown }: HostView): Promise<string[]> {
  const file = await realpath(RESOLVER).catch(() => null);
  return file === null || shown.some((path) => isIn(file, path)) ? [] : ["--ro-bind-try", file, file];
}

async function tryOut(bubblewrap: Bubblewrap, env: Readonly<Record<string, string>>): Promise<string | null> {
  const isolation = { root: "/var/tmp", allowed: [], hidden: [], network: false, sizeBytes: 2 ** 20, env };
  const list = [...(await bubblewrapArguments(bubblewrap, isolation, "/")), "/bin/sh", "-c", "exit 0"];
  const plan = {
    program: bubblewrap.program,
    arguments: list,
    name: "bwrap",
    cwd: "/",
    env,
    stdin: null,
    signal: null,
  };
  const { exitCode, stderr } = await new RunningCommand({ ...plan, timeoutMs: CHECK_MS_MAX }).result;
  return exitCode === 0 ? null : stderr.trim().split("\n")[0] || `exit code ${exitCode}`;
}

function byLength(one: string, other: string): number {
  return one.length - other.length;
}
