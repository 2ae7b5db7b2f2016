import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { withLock } from "./lock.mjs";
import { startPostgres } from "./postgres.mjs";
import { startRedis } from "./redis.mjs";
import { main, root, run, runNpm, SetupError } from "./run.mjs";
import { buildBench, buildPackage, ensureBuild, ensureNode24, ensurePackages, ensureRedis } from "./setup.mjs";

/** The packages that every LangGraph checkpointer needs beside itself. */
const langgraph = {
  "@langchain/langgraph": "1.4.18",
  "@langchain/langgraph-checkpoint": "1.1.5",
  "@langchain/core": "1.2.13",
};

/**
 * Other libraries that store conversations. They are installed for the benchmark only and are never a dependency.
 * `check` is a module that fails if the peer cannot be used, `section` is the section that measures it, `compiles`
 * tells that its installation runs a compiler, and `needsNode24` that it does not run on Node 20.
 * @typedef {{ name: string, section: string, packages: Record<string, string>, check: string, compiles?: boolean,
 *   needsNode24?: boolean }} Peer
 * @type {readonly Peer[]}
 */
const peers = [
  {
    name: "langgraph",
    section: "peers",
    packages: {
      "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
      ...langgraph,
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
    section: "peers",
    packages: { "@mariozechner/pi-coding-agent": "0.73.1" },
    check: `import { SessionManager } from "@mariozechner/pi-coding-agent"; SessionManager.inMemory();`,
  },
  {
    name: "mastra",
    section: "peers",
    packages: { "@mastra/libsql": "0.16.4", "@mastra/core": "0.24.9" },
    check: `import { LibSQLStore } from "@mastra/libsql"; new LibSQLStore({ url: ":memory:" });`,
  },
  {
    name: "openai-agents",
    section: "peers",
    packages: { "@openai/agents": "0.20.0", zod: "4.6.4" },
    check: `import { MemorySession } from "@openai/agents"; new MemorySession();`,
  },
  {
    name: "pi-cold",
    section: "cold",
    packages: { "@earendil-works/pi-coding-agent": "0.87.1" },
    check: `import { SessionManager } from "@earendil-works/pi-coding-agent"; SessionManager.inMemory();`,
    needsNode24: true,
  },
  {
    name: "langgraph-postgres",
    section: "postgres",
    packages: { "@langchain/langgraph-checkpoint-postgres": "1.0.5", ...langgraph },
    check: `import "@langchain/langgraph"; import "@langchain/langgraph-checkpoint-postgres";`,
  },
  {
    name: "langgraph-redis",
    section: "redis",
    packages: { "@langchain/langgraph-checkpoint-redis": "1.0.11", ...langgraph },
    check: `import "@langchain/langgraph"; import "@langchain/langgraph-checkpoint-redis";`,
  },
];

/**
 * The servers that sections need. `variable` names a running server; without it, one is started.
 * @typedef {{ sections: readonly string[], variable: string, name: string, start: () => Promise<{ url: string, stop: () => Promise<void> }> }} Server
 * @type {readonly Server[]}
 */
const servers = [
  {
    sections: ["postgres", "scale", "erase", "runs", "attachments"],
    variable: "SKEIN_TEST_POSTGRES_URL",
    name: "PostgreSQL",
    start: () => startPostgres({ synced: true }),
  },
  {
    sections: ["redis", "fleet", "scale", "attachments"],
    variable: "SKEIN_TEST_REDIS_URL",
    name: "Redis",
    start: async () => {
      await ensureRedis();
      return startRedis();
    },
  },
];

/** Dependencies of the pinned packages are installed as of this day, so that two runs measure the same code. */
const registryDay = "2026-10-15";

await main(async () => {
  if (!existsSync(join(root, "bench/main.ts"))) throw new SetupError("There is no bench/main.ts to run.");
  await ensurePackages();
  await ensureBuild();
  const args = process.argv.slice(2);
  const bench = await buildBench();
  // The command line is checked first, so that a typing error is reported before a long installation.
  const { parseBenchOptions, USAGE } = await import(pathToFileURL(join(bench, "bench-options.js")).href);
  let options;
  try {
    options = parseBenchOptions(args);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    console.error(`${error.message}\nUsage: ${USAGE}`);
    return 2;
  }
  /** @param {string} section */
  const isChosen = (section) => options.only?.includes(section) ?? true;
  const chosen = options.peers ? peers.filter(({ section }) => isChosen(section)) : [];
  if (chosen.length > 0) await withLock("bench-peers", () => ensurePeers(chosen));
  // The section measures on both versions of Node, and one of its peers needs the newer one.
  const newer = options.peers && isChosen("cold") ? { SKEIN_BENCH_NODE24: await ensureNode24() } : {};
  const against = options.against === null ? {} : { SKEIN_BENCH_AGAINST: await ensureRevision(options.against) };
  return withServers(
    servers.filter(({ sections }) => sections.some(isChosen)),
    (env) =>
      run(process.execPath, ["--expose-gc", join(bench, "main.js"), ...args], {
        env: { ...env, ...against, ...newer },
      }),
  );
});

/**
 * Builds a revision of this repository with the packages of this checkout, and resolves to the folder of its build.
 * Builds are cached.
 * @param {string} revision
 */
async function ensureRevision(revision) {
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync("git", args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  let commit;
  try {
    commit = git("rev-parse", "--verify", "--end-of-options", `${revision}^{commit}`).toString().trim();
  } catch {
    throw new SetupError(`There is no revision ${revision} to compare with; fetch it, or name another.`);
  }
  const folder = join(root, ".cache/bench-against", commit);
  if (existsSync(folder)) return join(folder, "dist");
  return withLock("bench-against", async () => {
    console.error(`Building ${commit} to compare with.`);
    const made = `${folder}.part`;
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { recursive: true });
    git("archive", "--format=tar", `--output=${made}.tar`, commit, "src", "package.json");
    execFileSync("tar", ["-xf", `${made}.tar`, "-C", made]);
    rmSync(`${made}.tar`);
    symlinkSync(join(root, "node_modules"), join(made, "node_modules"));
    await buildPackage(made, join(made, "dist"));
    renameSync(made, folder);
    return join(folder, "dist");
  });
}

/**
 * Runs `body` with the URLs of servers in the environment: of servers that are already running, or else of servers that
 * are started for it. For a server that cannot be started, the value is the reason.
 * @param {readonly Server[]} wanted
 * @param {(env: Record<string, string>) => Promise<number>} body
 */
async function withServers(wanted, body) {
  /** @type {Record<string, string>} */
  const env = {};
  const started = [];
  try {
    for (const { variable, name, start } of wanted.filter((each) => !process.env[each.variable])) {
      console.error(`Starting ${name} for the benchmark.`);
      try {
        const server = await start();
        started.push(server);
        env[variable] = server.url;
      } catch (error) {
        if (!(error instanceof SetupError)) throw error;
        console.error(`The benchmark continues without ${name}: ${error.message}`);
        env[`${variable}_PROBLEM`] = error.message;
      }
    }
    return await body(env);
  } finally {
    for (const server of started) await server.stop();
  }
}

/**
 * Installs missing peers. One that cannot be installed is listed in the table with the reason.
 * @param {readonly Peer[]} wanted
 */
async function ensurePeers(wanted) {
  for (const peer of wanted) {
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
    if (problem !== null) console.error(`The benchmark continues without ${peer.name}: ${problem}.`);
    writeFileSync(record, JSON.stringify({ ...wanted, problem }, null, 2));
  }
}

/**
 * Installs a peer; resolves to null, or to the reason of the failure.
 * @param {Peer} peer
 * @param {string} folder
 */
async function installPeer({ packages, check, compiles = false, needsNode24 = false }, folder) {
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
  const node = needsNode24 ? await ensureNode24() : process.execPath;
  const usable = await run(node, ["--input-type=module", "-e", program], { cwd: folder, quiet: true });
  if (usable !== 0) return `it was installed but does not run on Node ${needsNode24 ? "24" : process.versions.node}`;
  return null;
}

/**
 * Whether a peer was installed with exactly these packages; a failed installation is tried again.
 * @param {string} record
 * @param {object} wanted
 */
function holds(record, wanted) {
  if (!existsSync(record)) return false;
  return readFileSync(record, "utf8") === JSON.stringify({ ...wanted, problem: null }, null, 2);
}
