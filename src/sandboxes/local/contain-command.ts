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

/** Bubblewrap is two processes itself: one outside that waits, and the first one inside. */
const BUBBLEWRAP_PROCESSES = 2;
const FILE_TOO_LARGE = 128 + constants.signals.SIGXFSZ;

/** What holds the commands of a sandbox. */
export interface Container {
  readonly spec: SandboxSpec;
  readonly confinement: Confinement;
  /** The program that isolates commands, where they are isolated. */
  readonly bubblewrap: Bubblewrap | null;
  /** The account that the files are for; null where they are this program's. */
  readonly owner: FileOwner | null;
}

/** A command with all that holds it, ready to be started. Disposed of when it has ended. */
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

  /** What it came to. @throws {SandboxError} `limit_exceeded` when it failed, and is known to have wanted too much. */
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

/** Puts a command into what holds it: limits of its own, isolation, and a group with limits for all of it. */
export async function containCommand(
  list: readonly [string, ...string[]],
  { spec, confinement, bubblewrap, owner }: Container,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<ContainedCommand> {
  // What starts it would answer with an exit code of its own, which looks like the command's.
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
/** The first Linux that counts the processes of a user apart in each user namespace. */
const COUNTS_APART = [5, 14] as const;
/** Shells name the number of processes by `-u` or by `-p`. A limit above what the user may have stays as it is. */
const SCRIPT = `ulimit -f "$1"
[ "$2" = - ] || ulimit -d "$2"
[ "$3" = - ] || ulimit -u "$3" || ulimit -p "$3"`;

/** What sets limits that hold for each process by itself, in front of a command. */
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
  // A control group counts what is used, and all processes of the command together, which is better.
  const data = grouped ? "-" : `${Math.ceil(memoryBytes / KIBIBYTE)}`;
  const uid = account?.uid ?? process.getuid?.();
  // Only a user namespace counts apart, and one that runs as another account has none.
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

/** How many processes and threads the user has now, which the system counts in the limit of a new one. */
function tasksOfUser(uid: number | undefined): number {
  let tasks = 0;
  try {
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      const text = statusOf(pid);
      if (Number(/^Uid:\s+(\d+)/m.exec(text)?.[1]) === uid) tasks += Number(/^Threads:\s+(\d+)/m.exec(text)?.[1] ?? 1);
    }
  } catch {
    // Without /proc nothing can be counted, and a limit that counts everything would stop commands that do no harm.
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
