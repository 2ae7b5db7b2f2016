import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const hasProc = existsSync("/proc/self/stat");
const pollMs = 100;

/**
 * A process, told apart from a later one that gets the same id.
 * @typedef {{ pid: number, parent: number, startedAt: string }} ProcessRecord
 */

/**
 * The processes that a process has started, with those that they have started.
 * @param {number} pid
 * @returns {ProcessRecord[]}
 */
export function descendantsOf(pid) {
  const all = listProcesses();
  /** @type {(parent: number) => ProcessRecord[]} */
  const below = (parent) => all.filter((one) => one.parent === parent).flatMap((one) => [one, ...below(one.pid)]);
  return below(pid);
}

/**
 * The processes whose environment has a value of a variable, where the system tells; not the one that asks.
 * @param {string} name
 * @param {string} value
 * @returns {ProcessRecord[]}
 */
export function processesWith(name, value) {
  if (!hasProc) return [];
  return listProcesses().filter(({ pid }) => {
    if (pid === process.pid) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`${name}=${value}`);
    } catch {
      // It has ended, or is another account's.
      return false;
    }
  });
}

/**
 * Gives processes some time to end by themselves, then ends those that are left, and resolves to them.
 * @param {readonly ProcessRecord[]} processes
 * @param {number} graceMs
 */
export async function endProcesses(processes, graceMs) {
  for (const until = Date.now() + graceMs; Date.now() < until && stillThere(processes).length > 0; ) await wait(pollMs);
  const left = stillThere(processes);
  for (const { pid } of left) endProcess(pid);
  return left;
}

/** @param {number} pid */
export function endProcess(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended just now.
  }
}

/** @param {readonly ProcessRecord[]} processes */
function stillThere(processes) {
  if (processes.length === 0) return [];
  const now = new Map(listProcesses().map((one) => [one.pid, one.startedAt]));
  return processes.filter(({ pid, startedAt }) => now.get(pid) === startedAt);
}

/** @returns {ProcessRecord[]} without those that have ended and whose parent has not looked yet */
function listProcesses() {
  if (!hasProc) return listWithPs();
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        // The name of the program comes first, and may hold spaces and parentheses.
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        const [state, parent, startedAt = ""] = [fields[0], Number(fields[1]), fields[19]];
        return state === "Z" ? [] : [{ pid: Number(name), parent, startedAt }];
      } catch {
        // It has ended.
        return [];
      }
    });
}

/** @returns {ProcessRecord[]} */
function listWithPs() {
  if (process.platform === "win32") return [];
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,lstart="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, parent, state = "", startedAt = ""] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || state.startsWith("Z") ? [] : [{ pid: Number(pid), parent: Number(parent), startedAt }];
  });
}
