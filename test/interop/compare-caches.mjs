import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPlace } from "./program-place.mjs";
import { commandTools } from "./stand-in.mjs";

/** @typedef {import("./programs.mjs").Program} Program */
/** @typedef {"anthropic" | "openai"} Provider */
/** @typedef {{ name: string, provider: Provider, requests: number, newTokens: number, leastNewTokens: number, largestTokens: number, others: { requests: number, newTokens: number } }} Measured */
/**
 * The modules of the built benchmark that are used here.
 * @typedef {object} BenchModules
 * @property {typeof import("../../bench/cache/emulator-server.ts").startEmulator} startEmulator
 * @property {typeof import("../../bench/run-in-child.ts").runInChild} runInChild
 */

/** The model of each provider whose cache is emulated. */
const models = { anthropic: "claude-sonnet-4-5", openai: "gpt-5.2" };

const question = "Look into notes.txt again and tell me where the kettle is.";

/**
 * Has a session of so many turns with a program, each turn in a process of its own and with one file more in the project, and
 * counts what the emulated cache of a provider makes of its requests.
 * @param {Program} program
 * @param {readonly string[]} command
 * @param {Provider} provider
 * @param {number} turns
 * @param {BenchModules} bench
 * @returns {Promise<Measured>}
 */
export async function measureProgram(program, command, provider, turns, { startEmulator }) {
  const chooseCall = (/** @type {readonly string[]} */ tools) => {
    const name = tools.find((tool) => Object.hasOwn(commandTools, tool));
    return name === undefined ? null : { name, arguments: JSON.stringify(commandTools[name]?.("cat notes.txt")) };
  };
  const server = await startEmulator({ provider, model: models[provider] }, chooseCall);
  const chosen = program.onCacheOf?.(provider) ?? program;
  const place = openPlace(chosen, command, server.url);
  try {
    writeFileSync(join(place.project, "notes.txt"), "The blue kettle is in the shed.\n".repeat(40));
    // Programs tell their models about the repository, which changes while they work in it.
    execFileSync("git", ["init", "--quiet", place.project]);
    await place.run(chosen.begin(question));
    const { id } = await place.newest();
    for (let turn = 1; turn < turns; turn++) {
      writeFileSync(join(place.project, `made-in-turn-${turn}.txt`), "made\n");
      await place.run(chosen.resume(id, question));
    }
  } finally {
    place.remove();
    await server[Symbol.asyncDispose]();
  }
  return { name: `${program.title} ${program.version}`, provider, ...server.sums, others: server.others };
}

/**
 * The same with Skein: an agent with one tool.
 * @param {string} name
 * @param {Provider} provider
 * @param {number} turns
 * @param {BenchModules} bench
 * @returns {Promise<Measured>}
 */
export async function measureSkein(name, provider, turns, { startEmulator, runInChild }) {
  const emulated = { provider, model: models[provider] };
  const server = await startEmulator(emulated);
  const folder = mkdtempSync(join(tmpdir(), "skein-interop-"));
  try {
    const path = join(folder, "skein.db");
    let sessionId = null;
    for (let turn = 0; turn < turns; turn++) {
      sessionId = await runInChild("turns", { ...emulated, url: server.url, path, sessionId, turns: 1 });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await server[Symbol.asyncDispose]();
  }
  return { name, provider, ...server.sums, others: server.others };
}

/**
 * @param {readonly Measured[]} rows
 * @returns {string}
 */
export function cacheTable(rows) {
  const lines = rows.map(({ name, provider, requests, newTokens, leastNewTokens, largestTokens, others }) => {
    const [factor, least] = [newTokens / largestTokens, Math.max(1, leastNewTokens / largestTokens)];
    const cells = [name, models[provider], requests, largestTokens, factor.toFixed(2), least.toFixed(2)];
    const more = others.requests === 0 ? "none" : `${others.requests} (${others.newTokens} tokens)`;
    return `| ${[...cells, more].join(" | ")} |`;
  });
  const head =
    "| program | rules of | requests | tokens of the largest | re-write factor | least possible | requests without tools |";
  return [head, "|---|---|---|---|---|---|---|", ...lines].join("\n");
}
