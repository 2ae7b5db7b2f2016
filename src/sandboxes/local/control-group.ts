import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxLimits } from "../../session/sandbox/sandbox.ts";
import { isIn } from "./follow-links.ts";
import { RunningCommand } from "./running-command.ts";

const NAME = /^skein-(\d+)-\d+$/;
const REMOVE_ATTEMPTS_MAX = 40;
const REMOVE_WAIT_MS = 5;
const CHECK_MS_MAX = 10_000;
/** A script that joins the groups before the first `--`, and then executes the program after it. */
const JOIN = `while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"`;

type Controller = "pids" | "memory";

/** A control group in which this process may create others. */
interface Hierarchy {
  readonly directory: string;
  readonly version: 1 | 2;
  readonly controllers: readonly Controller[];
}

let found: Promise<readonly Hierarchy[] | null> | null = null;
let made = 0;

/**
 * Finds where control groups that limit processes and memory can be created; null if this process is not permitted to, as in
 * most containers and for most users.
 */
export function findControlGroups(): Promise<readonly Hierarchy[] | null> {
  found ??= find().catch(() => null);
  return found;
}

/** A control group for one command and all processes that it starts. It limits root as well. */
export class ControlGroup {
  readonly #parts: readonly (Hierarchy & { readonly group: string })[];

  private constructor(parts: readonly (Hierarchy & { readonly group: string })[]) {
    this.#parts = parts;
  }

  /** Creates a group with limits; `own`: how many processes in it do not belong to the command. */
  static async make(
    hierarchies: readonly Hierarchy[],
    limits: Required<SandboxLimits>,
    own: number,
  ): Promise<ControlGroup> {
    const name = `skein-${process.pid}-${++made}`;
    const group = new ControlGroup(hierarchies.map((each) => ({ ...each, group: join(each.directory, name) })));
    try {
      for (const part of group.#parts) await fill(part, limits, own);
      return group;
    } catch (error) {
      await group.remove();
      throw error;
    }
  }

  /** Wraps a command so that it joins the group before it runs. */
  wrap(list: readonly string[]): readonly [string, ...string[]] {
    return ["/bin/sh", "-c", JOIN, "sh", ...this.#parts.map(({ group }) => group), "--", ...list];
  }

  /** The limit that was exceeded in the group; null if none was. */
  async exceeded(): Promise<"memoryBytes" | "processes" | null> {
    for (const { group, version, controllers } of this.#parts) {
      const events = version === 1 ? "memory.oom_control" : "memory.events";
      if (controllers.includes("memory") && (await count(join(group, events), "oom_kill")) > 0) return "memoryBytes";
      if (controllers.includes("pids") && (await count(join(group, "pids.events"), "max")) > 0) return "processes";
    }
    return null;
  }

  /** Kills the processes in the group and removes it. If it cannot be removed now, the next program removes it. */
  async remove(): Promise<void> {
    for (const { group } of this.#parts) {
      await endAll(group);
      for (let attempt = 1; !(await removed(group)) && attempt < REMOVE_ATTEMPTS_MAX; attempt++)
        await sleep(REMOVE_WAIT_MS);
    }
  }
}

async function fill(
  { group, version, controllers }: Hierarchy & { readonly group: string },
  { memoryBytes, processes }: Required<SandboxLimits>,
  own: number,
): Promise<void> {
  await mkdir(group);
  if (controllers.includes("pids")) await writeFile(join(group, "pids.max"), `${processes + own}`);
  if (!controllers.includes("memory")) return;
  const [memory, swap, swapBytes] =
    version === 1
      ? ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", memoryBytes]
      : ["memory.max", "memory.swap.max", 0];
  await writeFile(join(group, memory), `${memoryBytes}`);
  // Not every system supports limits on swap.
  await writeFile(join(group, swap), `${swapBytes}`).catch(() => {});
}

async function find(): Promise<readonly Hierarchy[] | null> {
  const [groups, mounts] = await Promise.all(
    ["cgroup", "mountinfo"].map((name) => readFile(`/proc/self/${name}`, "latin1")),
  );
  const hierarchies =
    (await findSecond(groups as string, mounts as string)) ?? findFirst(groups as string, mounts as string);
  if (hierarchies === null) return null;
  for (const { directory } of hierarchies) await sweep(directory);
  const limits = { processes: 64, memoryBytes: 2 ** 26, fileBytes: 1, seconds: 1 };
  const group = await ControlGroup.make(hierarchies, limits, 0);
  const [program, ...list] = group.wrap(["true"]);
  const plan = { program, arguments: list, name: "true", cwd: "/", env: {}, stdin: null, signal: null };
  const { exitCode } = await new RunningCommand({ ...plan, timeoutMs: CHECK_MS_MAX }).result;
  await group.remove();
  return exitCode === 0 ? hierarchies : null;
}

/** The hierarchy of cgroups version 2: in this process's group or, if its processes prevent child groups, beside it. */
async function findSecond(groups: string, mounts: string): Promise<Hierarchy[] | null> {
  const own = directoryOf(mounts, /^0::(.*)$/m.exec(groups)?.[1], "cgroup2", null);
  const controllers = ["pids", "memory"] as const;
  for (const directory of own === null ? [] : [own, dirname(own)]) {
    const control = join(directory, "cgroup.subtree_control");
    const enabled = async (): Promise<boolean> => {
      const names = (await readFile(control, "latin1").catch(() => "")).trim().split(" ");
      return controllers.every((each) => names.includes(each));
    };
    if (!(await enabled())) await writeFile(control, "+pids +memory").catch(() => {});
    if (await enabled()) return [{ directory, version: 2, controllers }];
  }
  return null;
}

/** The hierarchies of cgroups version 1, one for each controller. */
function findFirst(groups: string, mounts: string): Hierarchy[] | null {
  const hierarchies: Hierarchy[] = [];
  for (const controller of ["pids", "memory"] as const) {
    const own = groups
      .split("\n")
      .map((line) => line.split(":"))
      .find(([, names]) => names?.split(",").includes(controller));
    const directory = directoryOf(mounts, own?.[2], "cgroup", controller);
    if (directory === null) return null;
    hierarchies.push({ directory, version: 1, controllers: [controller] });
  }
  return hierarchies;
}

/** The directory of a group in the file system. */
function directoryOf(
  mounts: string,
  group: string | undefined,
  type: string,
  controller: string | null,
): string | null {
  for (const line of mounts.split("\n")) {
    const [left = "", right = ""] = line.split(" - ");
    const [, , , root = "/", mountPoint = ""] = left.split(" ");
    const [kind, , options = ""] = right.split(" ");
    if (kind !== type || (controller !== null && !options.split(",").includes(controller))) continue;
    if (group !== undefined && isIn(group, root)) return join(mountPoint, relative(root, group));
  }
  return null;
}

/** Removes groups left by programs that ended without removing them. */
async function sweep(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const pid = Number(NAME.exec(name)?.[1] ?? process.pid);
    if (pid !== process.pid && !lives(pid)) await removed(join(directory, name));
  }
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

async function removed(group: string): Promise<boolean> {
  try {
    await rmdir(group);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Kills the processes of a group, repeatedly, because they may start others meanwhile. */
async function endAll(group: string): Promise<void> {
  for (let round = 0; round < REMOVE_ATTEMPTS_MAX; round++) {
    const pids = (await readFile(join(group, "cgroup.procs"), "latin1").catch(() => "")).split("\n").filter(Boolean);
    if (pids.length === 0) return;
    for (const pid of pids) kill(Number(pid));
    await sleep(REMOVE_WAIT_MS);
  }
}

function kill(pid: number): void {
  try {
    // 0 stands for a process of another namespace; `kill(0)` would signal this process's own group.
    if (pid > 0) process.kill(pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}

async function count(file: string, name: string): Promise<number> {
  const text = await readFile(file, "latin1").catch(() => "");
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}
