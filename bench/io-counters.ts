import { readFileSync } from "node:fs";

/** What this process has read and written so far, in bytes, as the kernel counts it. */
export interface IoCounters {
  /** Bytes given to write calls, rewritten ones included (`wchar`). */
  readonly writtenBytes: number;
  /** Bytes taken from read calls, whether or not they came from the disk (`rchar`). */
  readonly readBytes: number;
}

/** Reads `/proc/self/io`; NaN where there is none, so that what is computed from it shows as unknown. */
export function readIoCounters(): IoCounters {
  let text = "";
  try {
    text = readFileSync("/proc/self/io", "utf8");
  } catch {
    // Only Linux counts.
  }
  return { writtenBytes: counter(text, "wchar"), readBytes: counter(text, "rchar") };
}

function counter(text: string, name: string): number {
  return Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}
