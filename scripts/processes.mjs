import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const hasProc = existsSync("/proc/self/stat");
const pollMs = 100;

/**
 * A process, with its start time to distinguish it from a later one with the same id.
 * @typedef {{ pid: number, parent: number, startedAt: string }} ProcessRecord
 */

/**
 * The descendants of a process: its children, their children, and so on.
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
 * The processes whose environment has a value of a variable, on systems with /proc; without the current one.
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
      // It has ended, or belongs to another account.
      return false;
    }
  });
}

/**
 * Waits until processes have ended, kills those that are left after the grace period, and resolves to them.
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
    // It has already ended.
  }
}

/** @param {readonly ProcessRecord[]} processes */
function stillThere(processes) {
  if (processes.length === 0) return [];
  const now = new Map(listProcesses().map((one) => [one.pid, one.startedAt]));
  return processes.filter(({ pid, startedAt }) => now.get(pid) === startedAt);
}

/** @returns {ProcessRecord[]} without zombies */
function listProcesses() {
  if (!hasProc) return listWithPs();
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        // The name of the program comes first, and may contain spaces and parentheses.
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
