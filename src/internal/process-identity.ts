import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Identifies a process among all processes, including those of other machines and those that have ended. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, or null if unknown. It differs if the pid was reused for another process. */
  readonly startedAt: string | null;
  /** The namespace of its pid: machine, boot and container. Null if the system does not provide it. */
  readonly space: string | null;
}

/** This process. */
export const thisProcess: ProcessIdentity = Object.freeze({
  pid: process.pid,
  startedAt: startOf("self"),
  space: spaceOf(),
});

/** Whether a process is known to have ended. Also false if this process cannot find out. */
export function hasEnded(identity: ProcessIdentity): boolean {
  const { pid, startedAt, space } = identity;
  if (space === null || space !== thisProcess.space) return false;
  if (pid === thisProcess.pid && startedAt === thisProcess.startedAt) return false;
  return isPidFree(pid, startedAt);
}

/** Whether no process on this machine has this pid any more, or a later process has reused it. */
export function isPidFree(pid: number, startedAt: string | null): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  const started = startOf(pid);
  return started !== null && startedAt !== null && started !== startedAt;
}

/** Whether the process whose identity was stored as text is known to have ended; false if there is no text. */
export function hasHolderEnded(text: string | null | undefined): boolean {
  const identity = parseProcessIdentity(text);
  return identity !== null && hasEnded(identity);
}

/** Parses an identity that was written by `JSON.stringify`; null if the text is not one. */
export function parseProcessIdentity(text: string | null | undefined): ProcessIdentity | null {
  try {
    const { pid, startedAt, space } = JSON.parse(text ?? "") as Record<string, unknown>;
    // `process.kill` would read a number below 1 as a process group.
    if (!Number.isSafeInteger(pid) || (pid as number) < 1 || typeof space !== "string") return null;
    return { pid: pid as number, startedAt: typeof startedAt === "string" ? startedAt : null, space };
  } catch {
    return null;
  }
}

/** The boot id and start time of a process; "ended" for a zombie, and null if unknown. */
function startOf(pid: number | "self"): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses, which may contain any character.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return "ended";
    return `${bootId()}/${fields[19]}`;
  } catch {
    return null;
  }
}

/** The pid namespace of this process. The host name is not enough: containers can share it and have separate pids. */
function spaceOf(): string | null {
  if (process.platform !== "linux") return hostname();
  try {
    return `${bootId()}/${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return null;
  }
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
}
