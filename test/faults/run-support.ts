import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { SessionStore } from "../../src/session/store.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { type Running, start } from "./program-support.ts";

/** The places that a run can be kept in and another process can reach. */
export const places = ["file", "jsonl", "sqlite"] as const;

/** The path that a program is told for a place in a directory. */
export function pathOf(place: (typeof places)[number], directory: string): string {
  if (place === "jsonl") return directory;
  return join(directory, place === "file" ? "run.jsonl" : "skein.db");
}

/** The store at a place, seen by a clock that is ahead; a file is in the store of its directory. */
export async function storeAt(
  place: (typeof places)[number],
  directory: string,
  aheadSeconds: number,
): Promise<SessionStore> {
  const clock = (): Date => new Date(Date.now() + aheadSeconds * 1000);
  const store =
    place === "sqlite"
      ? await openSqliteStore({ path: pathOf(place, directory), clock })
      : await openJsonlStore({ directory, clock });
  onTestFinished(() => store.close());
  return store;
}

/** Starts a process that keeps a run; it is gone after the test. */
export function startRun(args: readonly string[], shell = ""): Running {
  return start("run-write.mjs", args, shell);
}
