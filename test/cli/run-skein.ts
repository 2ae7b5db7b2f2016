import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { optionsOf } from "../../src/cli/parse-command-line.ts";
import { runProgram } from "../../src/cli/run-program.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { makeDirectory, say } from "../moving/sample-store.ts";

/** The exit code and the outputs of a program. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The options of a run in this process. */
export interface RunHere {
  readonly colours?: boolean;
  readonly watched?: boolean;
  /** The width of the terminal. */
  readonly columns?: number;
  readonly signal?: AbortSignal;
  /** The answer to every question; left out without a terminal. */
  readonly answer?: string;
  /** Called with each piece of the output. */
  readonly onOutput?: (text: string) => void;
  /** Whether stores on the command line are trusted with --trust-store: tests create them in code (default true). */
  readonly trusts?: boolean;
}

/** Runs a command line in this process. */
export async function runHere(args: readonly string[], options: RunHere = {}): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  const code = await runProgram(commands, options.trusts === false ? args : trusting(args), {
    out: (text) => {
      stdout += text;
      options.onOutput?.(text);
    },
    err: (text) => {
      stderr += text;
    },
    colours: options.colours ?? false,
    watched: options.watched ?? false,
    ...(options.columns !== undefined && { columns: options.columns }),
    signal: options.signal ?? new AbortController().signal,
    ...(options.answer !== undefined && { ask: async () => options.answer as string }),
  });
  return { code, stdout, stderr };
}

/** The command line with --trust-store, if the command has that option and names a store. */
function trusting(args: readonly string[]): readonly string[] {
  const command = commands.find(({ name }) => args.includes(name));
  const named = args.some((arg) => /^--(store|from|to|archive)(=|$)/.test(arg));
  if (command === undefined || !named || !Object.hasOwn(optionsOf(command), "trust-store")) return args;
  return [...args, "--trust-store"];
}

/** The JSON output of a command; its fields must be documented. */
export async function jsonOf(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runHere([...args, "--json"]);
  expect([args, code, stderr]).toEqual([args, 0, ""]);
  expect(stdout).toMatch(/^[^\n]+\n$/);
  const printed = JSON.parse(stdout) as Record<string, unknown>;
  const documented = commands.find(({ name }) => name === args[0])?.json ?? {};
  expect([args[0], Object.keys(printed).sort()]).toEqual([args[0], Object.keys(documented).sort()]);
  return printed;
}

/** The path of the built program. */
export function builtProgram(): string {
  const built = fileURLToPath(new URL("../../dist/cli/skein.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  return built;
}

/** Runs the built program in a separate process. */
export function runProcess(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, ["--no-warnings", builtProgram(), ...trusting(args)], (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1, stdout, stderr });
    });
  });
}

/**
 * Creates a store with a session `plan` of two branches and its fork `plan-b`, deleted after the test; resolves to its
 * URL.
 */
export async function sampleStore(fill: (store: SessionStore) => Promise<void> = fillSample): Promise<string> {
  const path = join(await makeDirectory(), "skein.db");
  await using store = await openSqliteStore({ path });
  await fill(store);
  return `sqlite:${path}`;
}

async function fillSample(store: SessionStore): Promise<void> {
  await store.create(createHeader({ id: "plan", userId: "ann", cwd: "/work" }));
  await store.append("plan", [say("q", "Lisbon or Oslo?")]);
  await store.append("plan", [answer("a1", "Lisbon.")]);
  await store.append("plan", [{ type: "leaf", targetId: "q" }, answer("a2", "Oslo, of course.")]);
  const forkedFrom = { sessionId: "plan", entryId: null, version: 0, branchName: "b" };
  await store.fork("plan", createHeader({ id: "plan-b", userId: "ann", forkedFrom }));
  await store.append("plan-b", [say("q2", "By night train?")]);
  await store.append("plan-b", [answer("a3", "Why not.")]);
}

function answer(id: string, content: string) {
  const usage = { inputTokens: 5, outputTokens: 2, totalTokens: 7 };
  const message = { role: "assistant", content, provider: "offline", model: "offline", usage, cost: 0.5 } as const;
  return { id, type: "message", message } as const;
}
