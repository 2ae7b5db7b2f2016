import { constants, release } from "node:os";
import { readdirSync, readFileSync } from "node:fs";
import { show } from "../../session/errors.ts";
import { type ExecResult, SandboxError, type SandboxLimits, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { LIMITS_DEFAULT } from "../command-limits.ts";
import { type Bubblewrap, isolate } from "./bubblewrap.ts";
import type { Confinement } from "./confinement.ts";
import { ControlGroup, findControlGroups } from "./control-group.ts";
import { findProgram } from "./find-program.ts";
import type { FileOwner } from "./pinned-directory.ts";

/** Bubblewrap itself has two processes: one outside that waits, and the init process inside. */
const BUBBLEWRAP_PROCESSES = 2;
const FILE_TOO_LARGE = 128 + constants.signals.SIGXFSZ;

/** The confinement of a sandbox's commands. */
export interface Container {
  readonly spec: SandboxSpec;
  readonly confinement: Confinement;
  /** The program that isolates commands; null if they are not isolated. */
  readonly bubblewrap: Bubblewrap | null;
  /** The owner of the files; null for the account of this program. */
  readonly owner: FileOwner | null;
}

/** A command with its limits and isolation, ready to start. Dispose it after the command has ended. */
export class ContainedCommand implements AsyncDisposable {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly #limits: Required<SandboxLimits>;
  readonly #group: ControlGroup | null;

  constructor(list: readonly [string, ...string[]], limits: Required<SandboxLimits>, group: ControlGroup | null) {
    [this.program, ...this.arguments] = list;
    this.#limits = limits;
    this.#group = group;
  }

  /** Returns the result. @throws {SandboxError} `limit_exceeded` if the command failed because of a limit. */
  async check(result: ExecResult, name: string): Promise<ExecResult> {
    if (result.exitCode === 0) return result;
    const limit = result.exitCode === FILE_TOO_LARGE ? "fileBytes" : ((await this.#group?.exceeded()) ?? null);
    if (limit === null) return result;
    throw new SandboxError(
      "limit_exceeded",
      `The command ${show(name)} went beyond the limit ${limit} of ${this.#limits[limit]}; raise it in limits of the spec.`,
      { output: { stdout: result.stdout, stderr: result.stderr } },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#group?.remove();
  }
}

/** Wraps a command: resource limits per process, isolation, and a control group with limits for all of its processes. */
export async function containCommand(
  list: readonly [string, ...string[]],
  { spec, confinement, bubblewrap, owner }: Container,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<ContainedCommand> {
  // Checked here: the wrapping programs would report a missing program by an exit code that looks like the command's.
  if ((await findProgram(list[0], env["PATH"] ?? "", cwd)) === null) {
    throw new SandboxError("os_error", `The command could not be started: there is no program ${show(list[0])}.`);
  }
  const limits = { ...LIMITS_DEFAULT, ...spec.limits };
  const isolated = bubblewrap !== null;
  const hierarchies = await findControlGroups();
  const making = hierarchies && ControlGroup.make(hierarchies, limits, isolated ? BUBBLEWRAP_PROCESSES : 0);
  const group = (await making?.catch(() => null)) ?? null;
  try {
    const account = isolated ? owner : null;
    let held = withResourceLimits(list, limits, { grouped: group !== null, isolated, account });
    if (bubblewrap !== null) {
      const { root, allowed } = confinement;
      const [hidden, apart] = await Promise.all([confinement.hidden(), confinement.ownPaths()]);
      const network = spec.network === true;
      const isolation = { root, allowed, hidden, apart, account, network, sizeBytes: limits.memoryBytes, env };
      held = await isolate(bubblewrap, isolation, cwd, held);
    }
    return new ContainedCommand(group?.wrap(held) ?? (held as readonly [string, ...string[]]), limits, group);
  } catch (error) {
    await group?.remove();
    throw error;
  }
}

const BLOCK_BYTES = 512;
const KIBIBYTE = 1024;
/** The first Linux version that counts the processes of a user separately in each user namespace. */
const COUNTS_APART = [5, 14] as const;
/** Shells set the number of processes with `-u` or `-p`. A limit above the user's own limit is left unchanged. */
const SCRIPT = `ulimit -f "$1"
[ "$2" = - ] || ulimit -d "$2"
[ "$3" = - ] || ulimit -u "$3" || ulimit -p "$3"`;

/** Prefixes a command with a script that sets resource limits (ulimit), which hold for each process separately. */
function withResourceLimits(
  list: readonly string[],
  { processes, memoryBytes, fileBytes }: Required<SandboxLimits>,
  {
    grouped,
    isolated,
    account,
  }: { readonly grouped: boolean; readonly isolated: boolean; readonly account: FileOwner | null },
): readonly string[] {
  const blocks = Math.ceil(fileBytes / BLOCK_BYTES);
  // With a control group, memory is limited for all processes of the command together, so not here.
  const data = grouped ? "-" : `${Math.ceil(memoryBytes / KIBIBYTE)}`;
  const uid = account?.uid ?? process.getuid?.();
  // Processes are counted separately only in a user namespace, which a command under another account does not have.
  const others = isolated && account === null && countsApart() ? 0 : tasksOfUser(uid);
  const tasks = grouped || uid === 0 ? "-" : `${processes + others}`;
  const script = `{ ${SCRIPT}; } 2>/dev/null; shift 3; exec "$@"`;
  return ["/bin/sh", "-c", script, "sh", `${blocks}`, data, tasks, ...list];
}

function countsApart(): boolean {
  const [major = 0, minor = 0] = release().split(".").map(Number);
  return (
    process.platform === "linux" && (major > COUNTS_APART[0] || (major === COUNTS_APART[0] && minor >= COUNTS_APART[1]))
  );
}

/** The number of processes and threads of the user: they count against the limit. */
function tasksOfUser(uid: number | undefined): number {
  let tasks = 0;
  try {
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      const text = statusOf(pid);
      if (Number(/^Uid:\s+(\d+)/m.exec(text)?.[1]) === uid) tasks += Number(/^Threads:\s+(\d+)/m.exec(text)?.[1] ?? 1);
    }
  } catch {
    // Without /proc they cannot be counted; a high number avoids stopping harmless commands.
    return 2 ** 16;
  }
  return tasks;
}

function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1");
  } catch {
    return "";
  }
}
