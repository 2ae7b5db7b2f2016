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
/** The capabilities for `setpriv` to switch accounts, and for entering that account's directory before. */
const SWITCHING = ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH"];
/** The namespaces of `--unshare-all` except the user namespace, which would not contain other accounts. */
const NAMESPACES = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"];
/** A shell script that passes the contents of the account files as file descriptors 3 and 4. */
const ACCOUNT_FILES = `passwd=$1 group=$2; shift 2
exec "$@" 3<<END_OF_PASSWD 4<<END_OF_GROUP
$passwd
END_OF_PASSWD
$group
END_OF_GROUP`;
/** Cache of programs that work. Failures are not cached: the system may permit it later. */
const working = new Map<string, Bubblewrap>();

/** The program that isolates commands. */
export interface Bubblewrap {
  readonly program: string;
  /** Whether it can limit the size of a tmpfs; versions before 0.7 cannot. */
  readonly sizes: boolean;
  /** Whether it can prevent commands from creating user namespaces; versions before 0.8 cannot. */
  readonly locks: boolean;
  /** The `setpriv` that switches a command to another account; null if it does not work, or this program is not root. */
  readonly setpriv: string | null;
}

/** The resources that an isolated command may access. */
export interface Isolation {
  readonly root: string;
  /** Further paths that may be written. */
  readonly allowed: readonly string[];
  /** Paths in the root and in allowed paths that are hidden. */
  readonly hidden: readonly string[];
  /** Paths that are never mounted, even if a program of `PATH` needs them. */
  readonly apart: readonly string[];
  /** The account that the command runs as; null for the account of this program. */
  readonly account: FileOwner | null;
  readonly network: boolean;
  /** The maximum size of each private directory. */
  readonly sizeBytes: number;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Finds bubblewrap on this machine and tests it.
 *
 * @throws {SandboxError} `unsupported` if it is not installed, or the system does not permit it.
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

/** Finds `setpriv` to run commands as other accounts; null if this program is not root, or if it does not work. */
async function findSetpriv(bubblewrap: Bubblewrap, env: Readonly<Record<string, string>>): Promise<string | null> {
  const setpriv = isRoot() && bubblewrap.sizes ? await findProgram("setpriv", env["PATH"] ?? "", "/") : null;
  if (setpriv === null) return null;
  return (await tryOut({ ...bubblewrap, setpriv }, env, newAccount())) === null ? setpriv : null;
}

/**
 * The command line that runs a command in separate namespaces.
 *
 * The command can read the system and the programs of its `PATH`, and can write the root and the allowed paths. It has
 * private `/tmp`, `/run`, `/dev`, `/proc` and home directories. Files that only some accounts may read are covered, and
 * nothing else is mounted. It has no capabilities: with them, root could remount read-only paths for writing.
 *
 * Even without capabilities, root could write to `/proc/sys`, and could mount control groups for writing in a new user
 * namespace, so both are prevented.
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
    // Sockets can be connected to even on a read-only file system, and the host's services keep theirs in /run.
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
    // Without a size, it could grow to half of the memory.
    ...[...empty("/dev/shm"), "--remount-ro", "/dev"],
    ...view.kernel.readOnly.flatMap((path) => ["--ro-bind-try", path, path]),
    ...view.kernel.covered.flatMap(cover),
    ...(writable.includes("/") ? [] : ["--remount-ro", "/"]),
    ...["--chdir", cwd, "--"],
    ...(account === null ? [] : switchAccount(bubblewrap, account)),
    ...command,
  ];
  return names === null ? list : ["/bin/sh", "-c", ACCOUNT_FILES, "sh", names.passwd, names.group, ...list];
}

/**
 * Creates the parent directories of these paths so that other accounts can enter them: bubblewrap itself would create them
 * for root only. Existing ones are not changed.
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

/** A tmpfs that the command may write to, whatever its account. */
function emptyDirectory({ sizes }: Bubblewrap, { sizeBytes, account }: Isolation, path: string): string[] {
  const mode = account === null ? [] : ["--perms", "1777"];
  return [...mode, ...(sizes ? ["--size", `${sizeBytes}`] : []), "--tmpfs", path];
}

/** The prefix that runs a command as another account, without any capability to switch back. */
function switchAccount({ setpriv }: Bubblewrap, { uid, gid }: FileOwner): string[] {
  const ids = ["--reuid", `${uid}`, "--regid", `${gid}`, "--clear-groups"];
  return [`${setpriv}`, ...ids, "--inh-caps=-all", "--bounding-set=-all", "--"];
}

/** Mounts an empty file or directory over a path, if it still exists: a missing path cannot be a mount point. */
function cover(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isDirectory() ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path];
}

/**
 * Covers paths inside of writable directories. Their parent directories are bind-mounted on themselves, because only a mount
 * point cannot be renamed: otherwise the next command would find the path under a new name.
 */
function hide(hidden: readonly string[], writable: readonly string[]): string[] {
  // Skip paths inside of a covered directory: they are hidden with it, and nothing can be mounted there.
  const paths = hidden.filter((path) => !hidden.some((other) => other !== path && isIn(path, other)));
  const covers = paths.map(cover);
  const above = new Set<string>();
  for (const [index, path] of paths.entries()) {
    if (covers[index]?.length === 0) continue;
    const inside = (at: string): boolean => writable.some((each) => at !== each && isIn(at, each));
    for (let at = dirname(path); inside(at); at = dirname(at)) above.add(at);
  }
  // Bind mounts come first: a bind mount uncovers what was covered in it before.
  return [...[...above].sort(byLength).flatMap((each) => ["--bind", each, each]), ...covers.flat()];
}

/** Mounts the DNS configuration, which is often a link into `/run`. */
async function resolverArguments({ shown }: HostView): Promise<string[]> {
  const file = await realpath(RESOLVER).catch(() => null);
  return file === null || shown.some((path) => isIn(file, path)) ? [] : ["--ro-bind-try", file, file];
}

/** Runs a test command that prints its mounts; resolves to the problem, or null. */
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
