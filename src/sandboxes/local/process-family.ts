import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** The variable by which the processes of a command are found, wherever they went. */
export const COMMAND_VARIABLE = "SKEIN_COMMAND_ID";

const END_MS_MAX = 5_000;
const SCAN_MS = 4;

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
 * It is found by process group, by session, by descent, and by a variable in the environment, which reaches a daemon
 * that left all three. A process that also emptied its environment is found only as long as its parents live; isolation
 * with bubblewrap has no such gap. Without `/proc` only the process group is known.
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
   * not let go of cannot be waited for.
   *
   * A process that starts others as it dies, or that is just being replaced by another program, can be missed by one
   * look; `looks` says how many in a row must find nothing.
   */
  async end(looks: number): Promise<boolean> {
    const deadline = performance.now() + END_MS_MAX;
    for (let clean = 0; ; ) {
      clean = this.#kill() ? 0 : clean + 1;
      if (clean >= looks) return true;
      if (performance.now() > deadline) return false;
      await sleep(SCAN_MS);
    }
  }

  /** Kills what lives of it now; false when there was nothing. */
  #kill(): boolean {
    if (!hasProcessFiles) return send(-this.#leader);
    const members = this.#members();
    // The group first and in one step, since the members of a loop that starts processes are never all known.
    if (members.some(({ group }) => group === this.#leader)) send(-this.#leader);
    for (const { pid } of members) send(pid);
    return members.length > 0;
  }

  #members(): ProcessRow[] {
    const rows = readRows().filter(({ startTicks }) => startTicks >= this.#startTicks);
    const members = new Map<number, ProcessRow>();
    for (const row of rows) {
      const known = row.pid === this.#leader || row.group === this.#leader || row.session === this.#leader;
      if (known || hasMark(row.pid, this.#mark)) members.set(row.pid, row);
    }
    for (let before = -1; before !== members.size; ) {
      before = members.size;
      for (const row of rows) if (members.has(row.parent)) members.set(row.pid, row);
    }
    return [...members.values()];
  }
}

function readRows(): ProcessRow[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readRow(Number(name)))
    .filter((row) => row !== null && row.pid !== process.pid) as ProcessRow[];
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

function hasMark(pid: number, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(mark);
  } catch {
    return false;
  }
}

/** Whether there was a process to kill. */
function send(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}
