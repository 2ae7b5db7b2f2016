import { readFileSync } from "node:fs";

/** The bytes that this process has read and written so far, as the kernel counts them. */
export interface IoCounters {
  /** Bytes passed to write calls, including rewritten ones (`wchar`). */
  readonly writtenBytes: number;
  /** Bytes returned by read calls, from the disk or the cache (`rchar`). */
  readonly readBytes: number;
}

/** Reads `/proc/self/io`; NaN if it is missing, so that computed values are shown as unknown. */
export function readIoCounters(): IoCounters {
  let text = "";
  try {
    text = readFileSync("/proc/self/io", "utf8");
  } catch {
    // Only Linux has these counters.
  }
  return { writtenBytes: counter(text, "wchar"), readBytes: counter(text, "rchar") };
}

function counter(text: string, name: string): number {
  return Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}
