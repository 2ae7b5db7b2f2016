import { readdirSync, readFileSync } from "node:fs";
import { release } from "node:os";
import type { SandboxLimits } from "../../session/sandbox/sandbox.ts";

const BLOCK_BYTES = 512;
const KIBIBYTE = 1024;
/** The first Linux that counts the processes of a user apart in each user namespace. */
const COUNTS_APART = [5, 14] as const;
/** Shells name the number of processes by `-u` or by `-p`. A limit above what the user may have stays as it is. */
const SCRIPT = `ulimit -f "$1"
[ "$2" = - ] || ulimit -d "$2"
[ "$3" = - ] || ulimit -u "$3" || ulimit -p "$3"`;

/** What sets limits that hold for each process by itself, in front of a command. */
export function withResourceLimits(
  list: readonly string[],
  { processes, memoryBytes, fileBytes }: Required<SandboxLimits>,
  { grouped, isolated }: { readonly grouped: boolean; readonly isolated: boolean },
): readonly string[] {
  const blocks = Math.ceil(fileBytes / BLOCK_BYTES);
  // A control group counts what is used, and all processes of the command together, which is better.
  const data = grouped ? "-" : `${Math.ceil(memoryBytes / KIBIBYTE)}`;
  const tasks =
    grouped || process.getuid?.() === 0 ? "-" : `${processes + (isolated && countsApart() ? 0 : tasksOfUser())}`;
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
function tasksOfUser(): number {
  const uid = process.getuid?.();
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
