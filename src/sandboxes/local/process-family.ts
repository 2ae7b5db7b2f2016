import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** The variable by which the processes of a command are found, wherever they went. */
export const COMMAND_VARIABLE = "SKEIN_COMMAND_ID";

const END_MS_MAX = 5_000;
const LOOK_MS = 4;
const ROUNDS_MAX = 200;
const LOOKS_MAX = 5;

const hasProcessFiles = existsSync("/proc/self/stat");

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly startTicks: number;
}

/**
 * A command's process and everything that came of it.
 *
 * It is found by session, of which its process group is a part, by descent, and by a variable in the environment, which
 * reaches a daemon that left both. A process that also emptied its environment is found only as long as its parents
 * live; isolation with bubblewrap has no such gap. Without `/proc` only the process group is known.
 */
export class ProcessFamily {
  readonly #leader: number;
  readonly #mark: string;
  readonly #startTicks: number;

  /** Made in the same turn as the process, so that its entry in `/proc` is still there. */
  constructor(leader: number, commandId: string) {
    this.#leader = leader;
    this.#mark = `${COMMAND_VARIABLE}=${commandId}`;
    this.#startTicks = (hasProcessFiles ? readRow(leader)?.startTicks : undefined) ?? 0;
  }

  /**
   * Kills all of it. Resolves to whether nothing was left after some seconds of trying: a process that the system does
   * not let go of cannot be waited for. `looks` says how many looks in a row must find nothing.
   */
  async end(looks: number): Promise<boolean> {
    const deadline = performance.now() + END_MS_MAX;
    for (let clean = 0; ; ) {
      clean = this.#kill() ? 0 : clean + 1;
      if (clean >= looks) return true;
      if (performance.now() > deadline) return false;
      await sleep(LOOK_MS);
    }
  }

  /**
   * Kills what lives of it now; false when there was nothing.
   *
   * A process that starts its successor and ends is gone before a long list has been read to its end, so the list is
   * taken again, and only what is new on it is looked at, at once, until nothing is new. What is found is stopped at
   * first: it starts no more, and those below it can still be told by their parent.
   */
  #kill(): boolean {
    if (!hasProcessFiles) return send(-this.#leader, "SIGKILL");
    const rows = new Map<number, ProcessRow>();
    const members = new Set<number>();
    const looked = new Map<number, number>();
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const fresh = listProcesses().filter((pid) => (looked.get(pid) ?? 0) < LOOKS_MAX);
      if (fresh.length === 0) break;
      for (const pid of fresh) {
        const row = readRow(pid);
        const mark = row === null || row.startTicks < this.#startTicks ? "none" : findMark(pid, this.#mark);
        // A process that is just being replaced by another program has no variables for a moment.
        looked.set(pid, mark === "empty" ? (looked.get(pid) ?? 0) + 1 : LOOKS_MAX);
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
    // The group in one step, since the members of a loop that starts processes are never all known.
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

/** What the system says of a process; null when it has ended, also when nobody has asked for its exit code yet. */
function readRow(pid: number): ProcessRow | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name, in parentheses, and may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return null;
    const [parent, group, session] = fields.slice(1, 4).map(Number) as [number, number, number];
    return { pid, parent, group, session, startTicks: Number(fields[19]) };
  } catch {
    return null;
  }
}

/** Whether a process has a variable; `empty` when it has none at all. */
function findMark(pid: number, mark: string): "found" | "none" | "empty" {
  try {
    const text = readFileSync(`/proc/${pid}/environ`, "latin1");
    if (text === "") return "empty";
    return text.split("\0").includes(mark) ? "found" : "none";
  } catch {
    return "none";
  }
}

/** Whether there was a process, or for a negative number a process group, to send the signal to. */
function send(pid: number, signal: "SIGSTOP" | "SIGKILL"): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
