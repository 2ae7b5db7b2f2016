import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { main, root, SetupError } from "./run.mjs";
import { buildBench, ensureBuild, ensureNode24, ensurePackages, installAside } from "./setup.mjs";

const usage = `Usage: npm run interop [-- --only formats] [--record]

Runs the real programs whose sessions Skein reads and writes, offline, against a fake server of the model's API: each has a
conversation with tools, Skein imports and exports it, and the program continues what Skein wrote.

  --only formats  only these, as in codex,opencode: claude-code, codex, pi, opencode, claude-agent for the Claude Agent SDK on
                  our store, acpx for a client of the Agent Client Protocol on skein acp, and mcp for Claude Code, Codex and
                  opencode that find an earlier session through skein mcp; cache, which only runs if it is named, compares
                  how much of a session each program makes a provider process anew
  --record        also saves the programs' files as fixtures of npm test`;

const agentSdk = { format: "claude-agent", packageName: "@anthropic-ai/claude-agent-sdk", version: "0.3.328" };
const acpx = { format: "acpx", packageName: "acpx", version: "0.19.1" };

/** How many turns a session has whose requests are measured. */
const turnsMeasured = 20;

await main(async () => {
  const options = readOptions();
  if (options === null) return 0;
  await ensurePackages();
  await ensureBuild();
  const { programs } = await import("../test/interop/programs.mjs");
  const { openStandIn } = await import("../test/interop/stand-in.mjs");
  const { askEarlierSessions, compact, compacted, conversation, converse, goOn, helped, oneTurn } = await import(
    "../test/interop/try-program.mjs"
  );
  const only = options.only?.split(",");
  const known = [...programs.map(({ format }) => format), agentSdk.format, acpx.format, "mcp", "cache"];
  const unknown = only?.find((format) => !known.includes(format));
  if (unknown !== undefined) throw new SetupError(`--only names "${unknown}", which is not a program.\n\n${usage}`);
  const isChosen = (/** @type {string} */ format) => only === undefined || only.includes(format);
  if (only?.includes("cache")) await compareCaches(programs);
  if (isChosen(agentSdk.format)) await tryAgentSdk(openStandIn);
  if (isChosen(acpx.format)) {
    const { tryAcpx } = await import("../test/interop/try-acpx.mjs");
    await tryAcpx([await ensureNode24(), join(await installAside(acpx), "dist/cli.js")]);
    console.log(`acpx ${acpx.version} on skein acp: works`);
  }
  const standIn = await openStandIn();
  const chosen = programs.filter(({ format }) => isChosen(format));
  const said = [];
  /** @type {Trial[]} */
  const trials = [];
  let failed = false;
  try {
    for (const program of isChosen("mcp") ? programs.filter(({ ask }) => ask !== undefined) : []) {
      const installed = { program, command: await commandOf(program) };
      const problem = await askEarlierSessions(installed, standIn).catch(sentenceOf);
      failed ||= problem !== null;
      console.log(`${nameOf(program)} on skein mcp: ${problem ?? "finds an earlier session"}`);
    }
    /** @type {{ program: Program, command: string[] }[]} */
    const installed = [];
    for (const program of chosen) installed.push({ program, command: await commandOf(program) });
    for (const each of installed) said.push(await converse(each, standIn, options));
    for (const from of said) {
      for (const to of installed) {
        const handed = async () =>
          (await goOn(from, to, standIn, conversation)) ??
          (await goOn({ ...from, path: from.first }, to, standIn, oneTurn));
        const problem = await handed().catch(sentenceOf);
        trials.push({ from: from.program, to: to.program, problem });
        console.log(`${nameOf(from.program)} → ${nameOf(to.program)}: ${problem ?? "continues"}`);
      }
    }
    for (const from of said) {
      const same = installed.find(({ program }) => program === from.program);
      if (same === undefined) continue;
      if (from.helper !== null) {
        const problem = await goOn({ ...from, path: from.helper }, same, standIn, helped).catch(sentenceOf);
        trials.push({ from: from.program, to: "sub-agent", problem });
        console.log(`${nameOf(from.program)}, its sub-agent's session: ${problem ?? "continues"}`);
      }
      if (from.program.compact === undefined) continue;
      const again = async () => {
        await compact(from, options);
        return goOn(from, same, standIn, compacted);
      };
      const problem = await again().catch(sentenceOf);
      trials.push({ from: from.program, to: "compacted", problem });
      console.log(`${nameOf(from.program)} after a compaction: ${problem ?? "continues"}`);
    }
  } finally {
    for (const { place } of said) place.remove();
    await standIn.close();
  }
  if (options.only === undefined) writeFileSync(join(root, "docs/formats/versions.md"), versionsPage(chosen, trials));
  return !failed && trials.every(({ problem }) => problem === null) ? 0 : 1;
});

/** @typedef {import("../test/interop/programs.mjs").Program} Program */
/**
 * The result of handing a session on; a compacted one, and that of a sub-agent, is handed back to the program it came
 * from.
 * @typedef {{ from: Program, to: Program | "compacted" | "sub-agent", problem: string | null }} Trial
 */

/**
 * @param {readonly Program[]} programs
 * @param {readonly Trial[]} trials
 */
function versionsPage(programs, trials) {
  const rows = programs.map((from) => {
    const cells = [...programs, /** @type {const} */ ("compacted"), /** @type {const} */ ("sub-agent")].map((to) =>
      trials.find((trial) => trial.from === from && trial.to === to),
    );
    return `| ${nameOf(from)} | ${cells.map((trial) => (trial === undefined ? "not tried" : (trial.problem ?? "goes on"))).join(" | ")} |`;
  });
  const packages = programs.map(
    ({ title, packageName, version, bin, onNode24 }) =>
      `| ${title} | \`${packageName}\` | ${version} | ${bin.endsWith(".exe") ? "its own program" : `Node ${onNode24 ? 24 : parseInt(process.versions.node, 10)}`} |`,
  );
  return `# Versions that were tried

Written by \`npm run interop\` on ${new Date().toISOString().slice(0, 10)}; formats drift, so run it again for others.

Each program had a conversation with tools, offline, against a stand-in for its model's API. Skein imported its file and
handed the session to each program, in a home directory that had never seen it: all of the conversation, and another time only
its first turn. A program "goes on" when its next request to the model held the words of the user, of the model and of the tools
from before; after a compaction of its own, what came after that, and nothing of what its tools had said before. The session of a
sub-agent went back to the program as a session of its own. No command named a model for opencode: it was set up to know the
models that the others had used. No program wrote a line of a kind that Skein does not know.

| program | package | version | runs on |
|---|---|---|---|
${packages.join("\n")}

| from \\ to | ${programs.map(nameOf).join(" | ")} | itself, compacted | itself, a sub-agent's |
|---|${programs.map(() => "---|").join("")}---|---|
${rows.join("\n")}

The same command has the Claude Agent SDK (\`${agentSdk.packageName}\` ${agentSdk.version}) go on with a conversation from
\`skein/claude-agent\` alone, \`${acpx.packageName}\` ${acpx.version} drive \`skein acp\`, and
${programs
  .filter(({ ask }) => ask !== undefined)
  .map(nameOf)
  .join(", ")} find an earlier session through \`skein mcp\`; it ends with an error where one of them does not.

"Not tried" stands where a program has no command that compacts, or no sub-agents here.

Not run: OpenRath, which is not in the npm registry; its format is tried with files that follow its documents. pi 0.99.1 to
1.5.2, which need versions of packages that are not published; version 4 of its format is tried with a file that the core of
0.87.1 wrote.
`;
}

/** @param {unknown} error */
function sentenceOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {Program} program */
function nameOf({ title, version }) {
  return `${title} ${version}`;
}

/**
 * Has a conversation in the Claude Agent SDK, and continues it from our store alone.
 * @param {() => Promise<import("../test/interop/stand-in.mjs").StandIn>} openStandIn
 */
async function tryAgentSdk(openStandIn) {
  const { tryClaudeAgent } = await import("../test/interop/try-claude-agent.mjs");
  const sdk = await import(pathToFileURL(join(await installAside(agentSdk), "sdk.mjs")).href);
  const { lines, turns } = await tryClaudeAgent(sdk, openStandIn);
  console.log(`Claude Agent SDK ${agentSdk.version} on skein/claude-agent: continues (${lines} lines, ${turns} turns)`);
}

/**
 * Measures every program against the emulated prompt caches of the providers that it can be set up for, and prints a table.
 * @param {readonly Program[]} programs
 */
async function compareCaches(programs) {
  const bench = await buildBench();
  const load = (/** @type {string} */ path) => import(pathToFileURL(join(bench, path)).href);
  const modules = { ...(await load("cache/emulator-server.js")), ...(await load("run-in-child.js")) };
  const { cacheTable, measureProgram, measureSkein } = await import("../test/interop/compare-caches.mjs");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const rows = [];
  for (const provider of /** @type {const} */ (["anthropic", "openai"])) {
    rows.push(await measureSkein(`Skein ${version}`, provider, turnsMeasured, modules));
    for (const program of programs.filter(({ caches }) => caches.includes(provider))) {
      console.error(`Measuring ${nameOf(program)} on the rules of ${provider}.`);
      rows.push(await measureProgram(program, await commandOf(program), provider, turnsMeasured, modules));
    }
  }
  console.log(cacheTable(rows));
}

/**
 * Resolves to the command that starts a program.
 * @param {Program} program
 * @returns {Promise<string[]>}
 */
async function commandOf(program) {
  const file = join(await installAside(program), program.bin);
  if (program.onNode24) return [await ensureNode24(), file];
  return file.endsWith(".js") ? [process.execPath, file] : [file];
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string" },
        record: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (!values.help) return values;
    console.log(usage);
    return null;
  } catch (error) {
    throw new SetupError(`${/** @type {Error} */ (error).message}\n\n${usage}`);
  }
}
