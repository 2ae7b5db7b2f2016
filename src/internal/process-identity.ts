import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Tells a process from every other one, those on other machines and those of the past included. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it began, as far as the system tells: a number that was used again for another process differs. */
  readonly startedAt: string | null;
  /** Where its number means something; null where the system does not say. */
  readonly space: string | null;
}

/** This process. */
export const thisProcess: ProcessIdentity = Object.freeze({
  pid: process.pid,
  startedAt: startOf("self"),
  space: spaceOf(),
});

/** Whether a process is known to have ended: false also where that cannot be told from here. */
export function hasEnded(identity: ProcessIdentity): boolean {
  const { pid, startedAt, space } = identity;
  if (space === null || space !== thisProcess.space) return false;
  if (pid === thisProcess.pid && startedAt === thisProcess.startedAt) return false;
  return isNumberFree(pid, startedAt);
}

/** Whether no process of this machine has that number any more, or another one has got it since. */
export function isNumberFree(pid: number, startedAt: string | null): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  const started = startOf(pid);
  return started !== null && startedAt !== null && started !== startedAt;
}

/** Whether a process that left its identity as text is known to have ended; false where there is no such text. */
export function hasHolderEnded(text: string | null | undefined): boolean {
  const identity = parseProcessIdentity(text);
  return identity !== null && hasEnded(identity);
}

/** The identity that a text was made of with `JSON.stringify`; null for anything else. */
export function parseProcessIdentity(text: string | null | undefined): ProcessIdentity | null {
  try {
    const { pid, startedAt, space } = JSON.parse(text ?? "") as Record<string, unknown>;
    // A number below 1 would stand for a group of processes.
    if (!Number.isSafeInteger(pid) || (pid as number) < 1 || typeof space !== "string") return null;
    return { pid: pid as number, startedAt: typeof startedAt === "string" ? startedAt : null, space };
  } catch {
    return null;
  }
}

/** When a process began, and in which run of the system; a zombie counts as one that began never. */
function startOf(pid: number | "self"): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name, in parentheses, and may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return "ended";
    return `${bootId()}/${fields[19]}`;
  } catch {
    return null;
  }
}

/** Containers of one machine may have a name in common and still number their processes each for itself. */
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
