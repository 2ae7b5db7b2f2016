import { SandboxError } from "../../session/sandbox.ts";
import { findProgram } from "./find-program.ts";
import { RunningCommand } from "./running-command.ts";

const CHECK_MS_MAX = 10_000;

/** The programs that were tried out and work. */
const working = new Set<string>();

/** What a command under bubblewrap may write to. */
export interface BubblewrapMounts {
  readonly root: string;
  readonly allowed: readonly string[];
}

/**
 * The bubblewrap of this machine.
 *
 * @throws {SandboxError} `unsupported` when there is none, or the system does not let it work.
 */
export async function findBubblewrap(env: Readonly<Record<string, string>>): Promise<string> {
  const program = await findProgram("bwrap", env["PATH"] ?? "", "/");
  if (program === null) {
    throw new SandboxError(
      "unsupported",
      `Isolation with bubblewrap needs the program "bwrap"; install the package bubblewrap (apt-get install bubblewrap).`,
    );
  }
  if (working.has(program)) return program;
  const problem = await tryOut(program, env);
  if (problem !== null) {
    throw new SandboxError(
      "unsupported",
      `Isolation with bubblewrap does not work on this machine (${problem}); allow user namespaces, or run as root.`,
    );
  }
  working.add(program);
  return program;
}

/**
 * The arguments that put a program into namespaces of its own: no network, other processes invisible, the host's files
 * read-only but the root and the allowed paths, private `/tmp`, `/run`, `/dev` and `/proc`.
 */
export function bubblewrapArguments({ root, allowed }: BubblewrapMounts, cwd: string): string[] {
  return [
    ...["--unshare-all", "--die-with-parent", "--new-session"],
    ...["--ro-bind", "/", "/", "--tmpfs", "/tmp"],
    // A socket can be written to on a read-only file system too, and the host's services keep theirs in /run.
    ...["--tmpfs", "/run", "--ro-bind-try", "/run/current-system", "/run/current-system"],
    ...["--bind", root, root, ...allowed.flatMap((path) => ["--bind-try", path, path])],
    ...["--dev", "/dev", "--proc", "/proc", "--chdir", cwd, "--"],
  ];
}

async function tryOut(program: string, env: Readonly<Record<string, string>>): Promise<string | null> {
  const list = [...bubblewrapArguments({ root: "/tmp", allowed: [] }, "/"), "/bin/sh", "-c", "exit 0"];
  const plan = { program, arguments: list, name: "bwrap", cwd: "/", env, stdin: null, signal: null };
  const { exitCode, stderr } = await new RunningCommand({ ...plan, timeoutMs: CHECK_MS_MAX }).result;
  return exitCode === 0 ? null : stderr.trim().split("\n")[0] || `exit code ${exitCode}`;
}
