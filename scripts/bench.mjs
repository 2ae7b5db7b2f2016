import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { withLock } from "./lock.mjs";
import { main, root, run, runNpm, SetupError } from "./run.mjs";
import { buildBench, ensureBuild, ensurePackages } from "./setup.mjs";

/**
 * Other libraries that keep conversations, installed for the benchmark only and never a dependency. `check` is a
 * module that fails where the peer cannot be used; `compiles` says whether installing runs a compiler.
 * @typedef {{ name: string, packages: Record<string, string>, check: string, compiles?: boolean }} Peer
 * @type {readonly Peer[]}
 */
const peers = [
  {
    name: "langgraph",
    packages: {
      "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
      "@langchain/langgraph": "1.4.18",
      "@langchain/langgraph-checkpoint": "1.1.5",
      "@langchain/core": "1.2.13",
      "better-sqlite3": "12.11.1",
      zod: "4.6.4",
    },
    check: `import "@langchain/langgraph";
      import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
      SqliteSaver.fromConnString(":memory:");`,
    compiles: true,
  },
  {
    name: "pi",
    packages: { "@mariozechner/pi-coding-agent": "0.73.1" },
    check: `import { SessionManager } from "@mariozechner/pi-coding-agent"; SessionManager.inMemory();`,
  },
  {
    name: "mastra",
    packages: { "@mastra/libsql": "0.16.4", "@mastra/core": "0.24.9" },
    check: `import { LibSQLStore } from "@mastra/libsql"; new LibSQLStore({ url: ":memory:" });`,
  },
  {
    name: "openai-agents",
    packages: { "@openai/agents": "0.20.0", zod: "4.6.4" },
    check: `import { MemorySession } from "@openai/agents"; new MemorySession();`,
  },
];

/** What the pinned packages depend on is taken as it was on this day, so that two runs measure the same code. */
const registryDay = "2026-10-15";

await main(async () => {
  if (!existsSync(join(root, "bench/main.ts"))) throw new SetupError("There is no bench/main.ts to run.");
  await ensurePackages();
  await ensureBuild();
  const args = process.argv.slice(2);
  const bench = await buildBench();
  // The command line is looked at first, so that nobody waits for an installation to hear of a typing error.
  const { parseBenchOptions, USAGE } = await import(pathToFileURL(join(bench, "bench-options.js")).href);
  try {
    const { peers, only } = parseBenchOptions(args);
    if (peers && (only === null || only === "peers")) await withLock("bench-peers", ensurePeers);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    console.error(`${error.message}\nUsage: ${USAGE}`);
    return 2;
  }
  return run(process.execPath, ["--expose-gc", join(bench, "main.js"), ...args]);
});

/** Installs every peer that is not there yet. One that cannot be installed is named in the table, with the reason. */
async function ensurePeers() {
  for (const peer of peers) {
    const folder = join(root, ".cache/bench-peers", peer.name);
    const record = join(folder, "installation.json");
    const wanted = {
      ...peer,
      registryDay,
      node: process.versions.modules,
      platform: `${process.platform}-${process.arch}`,
    };
    if (holds(record, wanted)) continue;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const problem = await installPeer(peer, folder);
    if (problem !== null) console.error(`The benchmark goes on without ${peer.name}: ${problem}.`);
    writeFileSync(record, JSON.stringify({ ...wanted, problem }, null, 2));
  }
}

/**
 * Resolves to null, or to what went wrong.
 * @param {Peer} peer
 * @param {string} folder
 */
async function installPeer({ packages, check, compiles = false }, folder) {
  const names = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  const time = compiles ? " (compiling takes about a minute)" : "";
  console.error(`Installing for the benchmark only, into .cache/bench-peers${time}: ${names.join(", ")}.`);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  writeFileSync(join(folder, "load.mjs"), "export const load = (name) => import(name);\n");
  const flags = [
    "--save-exact",
    "--no-package-lock",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    `--before=${registryDay}`,
  ];
  const code = await runNpm([
    "install",
    "--prefix",
    folder,
    ...flags,
    ...(compiles ? [] : ["--ignore-scripts"]),
    ...names,
  ]);
  if (code !== 0) return `npm install ended with exit code ${code}`;
  const program = `${check}\nprocess.exit(0);`;
  const usable = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: folder, quiet: true });
  if (usable !== 0) return `it was installed but does not run on Node ${process.versions.node}`;
  return null;
}

/**
 * Whether a peer was installed, and just as it is wanted now; a failed one is tried again.
 * @param {string} record
 * @param {object} wanted
 */
function holds(record, wanted) {
  if (!existsSync(record)) return false;
  return readFileSync(record, "utf8") === JSON.stringify({ ...wanted, problem: null }, null, 2);
}
