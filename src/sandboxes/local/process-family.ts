import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** The environment variable that identifies all processes of a command, even daemons. */
export const COMMAND_VARIABLE = "SKEIN_COMMAND_ID";

const END_MS_MAX = 5_000;
const LOOK_MS = 4;
const ROUNDS_MAX = 200;
const SCANS_MAX = 5;

const hasProcessFiles = existsSync("/proc/self/stat");

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly startTicks: number;
}

/**
 * A command's process and all of its descendants.
 *
 * They are found by session (which includes the process group), by parent, and by an environment variable, which also marks
 * daemons that left the session and their parents. A process that has cleared its environment as well is found only while its
 * parents live; isolation with bubblewrap has no such gap. Without `/proc`, only the process group is known.
 */
export class ProcessFamily {
  readonly #leader: number;
  readonly #mark: string;
  readonly #startTicks: number;

  /** Must be called synchronously after the process was started, while its entry in `/proc` certainly exists. */
  constructor(leader: number, commandId: string) {
    this.#leader = leader;
    this.#mark = `${COMMAND_VARIABLE}=${commandId}`;
    this.#startTicks = (hasProcessFiles ? readRow(leader)?.startTicks : undefined) ?? 0;
  }

  /**
   * Kills all processes. Resolves to false if some remain after a few seconds, because the system cannot kill them. `scans`: how
   * many scans in a row must find none.
   */
  async end(scans: number): Promise<boolean> {
    const deadline = performance.now() + END_MS_MAX;
    for (let clean = 0; ; ) {
      clean = this.#kill() ? 0 : clean + 1;
      if (clean >= scans) return true;
      if (performance.now() > deadline) return false;
      await sleep(LOOK_MS);
    }
  }

  /**
   * Kills the processes that live now; false if there were none.
   *
   * A process that starts a successor and exits may be missed while a long process list is read. So the list is read again,
   * synchronously, and only new processes are examined, until there are no new ones. Found processes are first stopped
   * (SIGSTOP), so that they start no others and their children can still be identified by their parent.
   */
  #kill(): boolean {
    if (!hasProcessFiles) return send(-this.#leader, "SIGKILL");
    const rows = new Map<number, ProcessRow>();
    const members = new Set<number>();
    const scanned = new Map<number, number>();
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const fresh = listProcesses().filter((pid) => (scanned.get(pid) ?? 0) < SCANS_MAX);
      if (fresh.length === 0) break;
      for (const pid of fresh) {
        const row = readRow(pid);
        const mark = row === null || row.startTicks < this.#startTicks ? "none" : findMark(pid, this.#mark);
        // During exec, a process briefly has no environment, so an empty one is examined again.
        scanned.set(pid, mark === "empty" ? (scanned.get(pid) ?? 0) + 1 : SCANS_MAX);
        if (row === null || row.startTicks < this.#startTicks) continue;
        rows.set(pid, row);
        if (pid === this.#leader || row.session === this.#leader || mark === "found") this.#add(row, members);
      }
      for (let before = -1; before !== members.size; ) {
        before = members.size;
        for (const row of rows.values()) if (members.has(row.parent)) this.#add(row, members);
      }
    }
    for (const pid of members) send(pid, "SIGKILL");
    return members.size > 0;
  }

  #add({ pid, group }: ProcessRow, members: Set<number>): void {
    if (members.has(pid)) return;
    members.add(pid);
    // Signal the whole group at once: the processes of a fork loop can never all be listed.
    if (group === this.#leader) send(-this.#leader, "SIGSTOP");
    send(pid, "SIGSTOP");
  }
}

function listProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

/** The entry of a process in `/proc`; null if it has ended or is a zombie. */
function readRow(pid: number): ProcessRow | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses, which may contain any characters.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return null;
    const [parent, group, session] = fields.slice(1, 4).map(Number) as [number, number, number];
    return { pid, parent, group, session, startTicks: Number(fields[19]) };
  } catch {
    return null;
  }
}

/** Whether a process has the variable; `empty` if it has no environment at all. */
function findMark(pid: number, mark: string): "found" | "none" | "empty" {
  try {
    const text = readFileSync(`/proc/${pid}/environ`, "latin1");
    if (text === "") return "empty";
    return text.split("\0").includes(mark) ? "found" : "none";
  } catch {
    return "none";
  }
}

/** Sends a signal to a process, or to a process group for a negative number; false if it does not exist. */
function send(pid: number, signal: "SIGSTOP" | "SIGKILL"): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
