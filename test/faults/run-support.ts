import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { SessionStore } from "../../src/session/store.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";

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

/** A process that keeps a run. */
export interface RunProcess {
  readonly child: ChildProcess;
  /** What it has acknowledged so far; a line that was cut short is left out. */
  lines(): string[];
  readonly ended: Promise<void>;
  /** Resolves when it has printed something, or has ended. */
  readonly begun: Promise<unknown>;
}

/** Starts a process that keeps a run; it is gone after the test. */
export function startRun(args: readonly string[], shell = ""): RunProcess {
  const built = fileURLToPath(new URL("../../dist/agent/open-run-sink.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  const program = fileURLToPath(new URL("./programs/run-write.mjs", import.meta.url));
  const command = [process.execPath, "--no-warnings", program, ...args];
  const child =
    shell === ""
      ? spawn(command[0] as string, command.slice(1), { stdio: ["ignore", "pipe", "inherit"] })
      : spawn("bash", ["-c", `${shell}; exec "$@"`, "bash", ...command], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  const ended = once(child, "close").then(() => {});
  const begun = Promise.race([once(child.stdout, "data"), ended]);
  return { child, ended, begun, lines: () => text.split("\n").slice(0, -1) };
}
