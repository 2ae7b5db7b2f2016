import { lstatSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { accountFiles, isRoot, newAccount } from "./account.ts";
import { isIn } from "./follow-links.ts";
import { findProgram } from "./find-program.ts";
import { type HostView, viewOfHost } from "./host-view.ts";
import { findUnmasked } from "./kernel-files.ts";
import type { FileOwner } from "./pinned-directory.ts";
import { RunningCommand } from "./running-command.ts";

const CHECK_MS_MAX = 10_000;
const RESOLVER = "/etc/resolv.conf";
const MOUNTS = "/proc/self/mountinfo";
/** What `setpriv` needs to become another account, and what entering a directory of that account needs before. */
const SWITCHING = ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH"];
/** The namespaces of `--unshare-all` without the one of users, in which there are no other accounts. */
const NAMESPACES = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"];
/** Where the files with the names of accounts are handed over. */
const ACCOUNT_FILES = `passwd=$1 group=$2; shift 2
exec "$@" 3<<END_OF_PASSWD 4<<END_OF_GROUP
$passwd
END_OF_PASSWD
$group
END_OF_GROUP`;
/** The programs that were tried out and work. One that does not is tried again: it may have been allowed meanwhile. */
const working = new Map<string, Bubblewrap>();

/** The program that isolates commands. */
export interface Bubblewrap {
  readonly program: string;
  /** Whether it can limit the size of what is kept in memory; versions before 0.7 cannot. */
  readonly sizes: boolean;
  /** Whether it can keep a command from making user namespaces; versions before 0.8 cannot. */
  readonly locks: boolean;
  /** The program by which a command becomes another account; null where that does not work, or this program is not root. */
  readonly setpriv: string | null;
}

/** What an isolated command may reach. */
export interface Isolation {
  readonly root: string;
  /** Paths beside the root that may be written, too. */
  readonly allowed: readonly string[];
  /** Paths in the root and beside it that are not to be found. */
  readonly hidden: readonly string[];
  /** Paths anywhere that are never shown for the sake of a program. */
  readonly apart: readonly string[];
  /** The account that the command runs as; null for the one of this program. */
  readonly account: FileOwner | null;
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
  const locks = isRoot();
  const versions = [
    { sizes: true, locks },
    ...(locks ? [{ sizes: true, locks: false }] : []),
    { sizes: false, locks: false },
  ];
  const problems: string[] = [];
  for (const version of versions) {
    const found = { program, ...version, setpriv: null };
    const problem = await tryOut(found, env, null);
    if (problem === null) {
      const bubblewrap = { ...found, setpriv: await findSetpriv(found, env) };
      working.set(program, bubblewrap);
      return bubblewrap;
    }
    problems.push(problem);
  }
  throw new SandboxError(
    "unsupported",
    `Isolation with bubblewrap does not work on this machine (${problems[0]}); allow user namespaces, or run as root.`,
  );
}

/** What runs commands as other accounts, where this program is root and that works. */
async function findSetpriv(bubblewrap: Bubblewrap, env: Readonly<Record<string, string>>): Promise<string | null> {
  const setpriv = isRoot() && bubblewrap.sizes ? await findProgram("setpriv", env["PATH"] ?? "", "/") : null;
  if (setpriv === null) return null;
  return (await tryOut({ ...bubblewrap, setpriv }, env, newAccount())) === null ? setpriv : null;
}

/**
 * A command in namespaces of its own.
 *
 * It sees the system for reading, the programs of its `PATH`, the root and the allowed paths for writing, and private
 * `/tmp`, `/run`, `/dev`, `/proc` and homes. What the system keeps for some accounts is covered, and nothing else is
 * there. It has no capabilities: root could remount for writing what is shown for reading.
 *
 * Files are not all that root owns. Without capabilities it could still write to `/proc/sys`, and in a user namespace of
 * its own mount control groups for writing, so both are taken away.
 */
export async function isolate(
  bubblewrap: Bubblewrap,
  isolation: Isolation,
  cwd: string,
  command: readonly string[],
): Promise<string[]> {
  const { root, allowed, hidden, apart, network, env, account } = isolation;
  const writable = [root, ...allowed].sort(byLength);
  const view = viewOfHost(env, { writable, hidden: [...hidden, ...apart] });
  const empty = (path: string): string[] => emptyDirectory(bubblewrap, isolation, path);
  const names = account === null ? null : accountFiles(account, env["HOME"] ?? "/");
  const nameFiles = ["passwd", "group"].flatMap((name, index) => {
    return ["--perms", "0644", "--ro-bind-data", `${index + 3}`, `/etc/${name}`];
  });
  const list = [
    bubblewrap.program,
    ...namespaces(bubblewrap, isolation),
    ...view.links.flatMap(({ path, target }) => ["--symlink", target, path]),
    ...view.shown.flatMap((path) => ["--ro-bind", path, path]),
    ...view.covered.flatMap(cover),
    ...(names === null ? [] : nameFiles),
    // A socket can be written to on a read-only file system too, and the host's services keep theirs in /run.
    ...["/tmp", "/var/tmp", "/run", ...view.homes].flatMap(empty),
    ...["--ro-bind-try", "/run/current-system", "/run/current-system"],
    ...(account === null ? [] : enterable(writable, view)),
    ...view.programs.shown.flatMap((path) => ["--ro-bind-try", path, path]),
    ...view.programs.covered.flatMap(cover),
    ...view.programs.links.flatMap(({ path, target }) => ["--symlink", target, path]),
    ...(network ? await resolverArguments(view) : []),
    ...writable.flatMap((path) => [path === root ? "--bind" : "--bind-try", path, path]),
    ...hide(hidden, writable),
    ...(writable.includes("/") ? ["--ro-bind-try", "/sys", "/sys"] : []),
    ...["--dev", "/dev", "--proc", "/proc"],
    // Otherwise it is as large as half of the memory.
    ...[...empty("/dev/shm"), "--remount-ro", "/dev"],
    ...view.kernel.readOnly.flatMap((path) => ["--ro-bind-try", path, path]),
    ...view.kernel.covered.flatMap(cover),
    ...(writable.includes("/") ? [] : ["--remount-ro", "/"]),
    ...["--chdir", cwd, "--"],
    ...(account === null ? [] : becoming(bubblewrap, account)),
    ...command,
  ];
  return names === null ? list : ["/bin/sh", "-c", ACCOUNT_FILES, "sh", names.passwd, names.group, ...list];
}

/**
 * Makes the directories above these paths, which bubblewrap makes for root alone. What is there already stays as it is.
 */
function enterable(writable: readonly string[], { shown, programs }: HostView): string[] {
  const paths = [...writable, ...programs.shown, ...programs.links.map(({ path }) => path)];
  const above = new Set<string>();
  for (const path of paths) for (let at = dirname(path); at !== dirname(at); at = dirname(at)) above.add(at);
  const missing = [...above].filter((at) => !shown.some((each) => isIn(at, each)));
  return missing.sort(byLength).flatMap((at) => ["--perms", "0755", "--dir", at]);
}

function namespaces({ locks }: Bubblewrap, { network, account }: Isolation): string[] {
  const ending = ["--die-with-parent", "--new-session", "--cap-drop", "ALL"];
  if (account !== null) {
    const capabilities = SWITCHING.flatMap((each) => ["--cap-add", each]);
    return [...NAMESPACES, ...(network ? [] : ["--unshare-net"]), ...ending, ...capabilities];
  }
  const users = locks ? ["--unshare-user", "--disable-userns"] : [];
  return ["--unshare-all", ...users, ...(network ? ["--share-net"] : []), ...ending];
}

/** A directory in memory that the command may write to, whichever account it has. */
function emptyDirectory({ sizes }: Bubblewrap, { sizeBytes, account }: Isolation, path: string): string[] {
  const mode = account === null ? [] : ["--perms", "1777"];
  return [...mode, ...(sizes ? ["--size", `${sizeBytes}`] : []), "--tmpfs", path];
}

/** What makes the rest of a command run as another account, and leaves it no capability to come back. */
function becoming({ setpriv }: Bubblewrap, { uid, gid }: FileOwner): string[] {
  const ids = ["--reuid", `${uid}`, "--regid", `${gid}`, "--clear-groups"];
  return [`${setpriv}`, ...ids, "--inh-caps=-all", "--bounding-set=-all", "--"];
}

/** Puts something empty over a file or a directory, where there still is one: a missing one could not be covered. */
function cover(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isDirectory() ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path];
}

/**
 * Covers paths among files that the command may change. The directories above them are mounted on themselves, since only
 * what is a mount cannot be renamed: the next command would find it under the new name.
 */
function hide(hidden: readonly string[], writable: readonly string[]): string[] {
  // A path inside of a covered directory is gone with it, and nothing can be mounted there.
  const paths = hidden.filter((path) => !hidden.some((other) => other !== path && isIn(path, other)));
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

/** Runs a command that does nothing but show what is mounted; resolves to what is wrong, or null. */
async function tryOut(
  bubblewrap: Bubblewrap,
  env: Readonly<Record<string, string>>,
  account: FileOwner | null,
): Promise<string | null> {
  const paths = { root: "/var/tmp", allowed: [], hidden: [], apart: [] };
  const isolation = { ...paths, network: false, sizeBytes: 2 ** 20, env, account };
  const command = ["/bin/sh", "-c", `id -u; exec cat ${MOUNTS}`];
  const [program = "", ...list] = await isolate(bubblewrap, isolation, "/", command);
  const plan = { program, arguments: list, name: "bwrap", cwd: "/", env, stdin: null, signal: null };
  const { exitCode, stdout, stderr } = await new RunningCommand({ ...plan, timeoutMs: CHECK_MS_MAX }).result;
  if (exitCode !== 0) return stderr.trim().split("\n")[0] || `exit code ${exitCode}`;
  if (account !== null && stdout.split("\n")[0] !== `${account.uid}`) return "commands keep the account of root";
  const unmasked = findUnmasked(stdout, viewOfHost(env, { writable: ["/var/tmp"], hidden: [] }).kernel);
  return unmasked === null ? null : `commands could write to ${unmasked}`;
}

function byLength(one: string, other: string): number {
  return one.length - other.length;
}
