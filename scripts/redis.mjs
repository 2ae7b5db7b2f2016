import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { SetupError } from "./run.mjs";

const password = "not-a-secret";
const startsMax = 5;
const startMsMax = 60_000;
const programs = ["redis-server", "valkey-server"];

/**
 * Ends the server when whoever started it closes its standard input or dies, however that happens. The directory goes
 * with it, unless the last word was to keep it.
 */
const guard = `
  directory=$1; shift
  "$@" & server=$!
  exec 1>&-
  read -r word
  kill -TERM $server 2>/dev/null
  wait $server
  [ "$word" = keep ] || rm -rf "$directory"`;

/**
 * A Redis server of this checkout's own.
 * @typedef {object} RedisServer
 * @property {string} url with its password
 * @property {number} port
 * @property {() => number} pid of the server itself
 * @property {() => Promise<void>} stop ends it and removes what it kept
 * @property {() => Promise<void>} halt ends it and keeps its data
 * @property {() => Promise<void>} resume starts it again on the same port
 * @property {() => void} crash kills it as a power cut would
 */

/** Why there is no Redis to start here, or null when there is one. */
export function redisMissing() {
  if (process.platform === "win32") return "there is no Redis for Windows";
  return redisProgram() === null ? "redis-server is not installed and SKEIN_TEST_REDIS_URL is not set" : null;
}

/**
 * Starts a server on a free port of 127.0.0.1, in a temporary directory.
 * @param {readonly string[]} [flags] settings beside those that every test needs
 * @returns {Promise<RedisServer>}
 */
export async function startRedis(flags = []) {
  const program = redisProgram();
  if (program === null)
    throw new SetupError("There is no Redis here; install redis-server or set SKEIN_TEST_REDIS_URL.");
  const directory = mkdtempSync(join(tmpdir(), "skein-redis-"));
  mkdirSync(join(directory, "data"));
  try {
    for (let start = 1; ; start++) {
      const place = { program, directory, flags, port: await freePort() };
      try {
        return serverOf(place, await launch(place));
      } catch (error) {
        // Between the look and the start, someone else may have taken the port.
        if (start === startsMax) throw error;
      }
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw new SetupError(`Redis could not be started for the tests: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * Runs `body` while there is a server for all tests to share: the one that SKEIN_TEST_REDIS_URL names, or one that is
 * started for it and named there. Where there is no Redis, the tests that need one are skipped, with the reason.
 * @template T
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withRedis(body) {
  if (process.env.SKEIN_TEST_REDIS_URL || redisMissing() !== null) return body();
  console.log("Starting Redis for the tests.");
  const server = await startRedis();
  process.env.SKEIN_TEST_REDIS_URL = server.url;
  try {
    return await body();
  } finally {
    await server.stop();
  }
}

/** @typedef {{ program: string, directory: string, flags: readonly string[], port: number }} Place */
/** @typedef {{ end: (word: string) => Promise<void> }} Running */

/**
 * @param {Place} place
 * @param {Running} first
 * @returns {RedisServer}
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
  const pid = () => Number(readFileSync(join(place.directory, "redis.pid"), "utf8"));
  return {
    url: `redis://:${password}@127.0.0.1:${place.port}`,
    port: place.port,
    pid,
    stop: async () => {
      await end("stop");
      rmSync(place.directory, { recursive: true, force: true });
    },
    halt: () => end("keep"),
    resume: async () => {
      running = await launch(place);
    },
    crash: () => void process.kill(pid(), "SIGKILL"),
  };
}

/**
 * Starts the server and resolves once it answers.
 * @param {Place} place
 * @returns {Promise<Running>}
 */
async function launch({ program, directory, flags, port }) {
  const settings = [
    ...["--bind", "127.0.0.1", "--port", String(port), "--requirepass", password, "--masterauth", password],
    ...["--dir", join(directory, "data"), "--pidfile", join(directory, "redis.pid")],
    // It writes its process id only where it is told to run apart or, as here, where a pidfile is named.
    ...["--daemonize", "no", "--save", "", "--appendonly", "no", ...flags],
  ];
  const child = spawn("sh", ["-c", guard, "sh", directory, program, ...settings], {
    cwd: directory,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const closed = once(child, "close");
  /** @param {string} word */
  const end = async (word) => {
    child.stdin.on("error", () => {});
    child.stdin.end(`${word}\n`);
    await closed;
  };
  try {
    await untilReady(child.stdout, port);
  } catch (error) {
    await end("keep");
    throw error;
  }
  return { end };
}

/**
 * Resolves once the server says that it takes connections and has read its data.
 * @param {import("node:stream").Readable} stdout which only the server writes to, so that it ends with the server
 * @param {number} port
 * @returns {Promise<void>}
 */
function untilReady(stdout, port) {
  return new Promise((resolve, reject) => {
    let said = "";
    const fail = () => reject(new Error(`the server on port ${port} said ${said.trim().slice(-500) || "nothing"}`));
    const timer = setTimeout(fail, startMsMax);
    stdout.on("data", (chunk) => {
      said += chunk;
      if (!/ready to accept connections/i.test(said)) return;
      clearTimeout(timer);
      untilConnected(port).then(resolve, reject);
      said = "";
    });
    stdout.once("end", () => {
      clearTimeout(timer);
      fail();
    });
  });
}

/**
 * @param {number} port
 * @returns {Promise<void>}
 */
async function untilConnected(port) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
}

function redisProgram() {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return (
    programs.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path)) ?? null
  );
}

/**
 * A port of 127.0.0.1 that nobody uses just now.
 * @returns {Promise<number>}
 */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}
