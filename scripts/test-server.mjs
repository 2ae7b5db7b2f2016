import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { reachableTmpdir } from "./other-account.mjs";
import { descendantsOf, endProcess } from "./processes.mjs";
import { SetupError } from "./run.mjs";

const startsMax = 5;
const startMsMax = 120_000;
const stopMsMax = 60_000;
const resumesMax = 20;
const resumeWaitMs = 200;

/**
 * Ends the server when whoever started it closes its standard input or dies, however that happens, also by a signal to
 * all of them. The directory goes with it, unless the last word was to keep it. Only the server holds its output, which
 * therefore ends with it.
 */
const guard = `
  directory=$1; signal=$2; shift 2
  trap : HUP INT TERM
  "$@" 2>&1 & server=$!
  exec 1>&-
  read -r word
  kill -"$signal" $server 2>/dev/null
  while kill -0 $server 2>/dev/null; do wait $server; done
  [ "$word" = keep ] || rm -rf "$directory"`;

/**
 * A server of this checkout's own on 127.0.0.1.
 * @typedef {object} TestServer
 * @property {number} port
 * @property {() => number} pid of the server itself
 * @property {() => Promise<void>} stop ends it and removes what it kept
 * @property {() => Promise<void>} halt ends it and keeps its data
 * @property {() => Promise<void>} resume starts it again on the same port
 * @property {(signal?: NodeJS.Signals) => void} crash sends it a signal; without one it dies as in a power cut
 */

/**
 * How a kind of server is run.
 * @typedef {object} ServerKind
 * @property {string} name
 * @property {string} signal that asks it to end, without its SIG
 * @property {string} pidFile in its directory; the first line is its process id
 * @property {{ uid?: number, gid?: number }} [owner] whom it runs as
 * @property {(directory: string) => Promise<void>} prepare makes what it needs in its directory
 * @property {(directory: string, port: number) => readonly string[]} command
 */

/** @typedef {{ kind: ServerKind, directory: string, port: number }} Place */
/** @typedef {{ end: (word: "keep" | "stop") => Promise<void> }} Running */

/**
 * Starts a server on a free port of 127.0.0.1, in a temporary directory.
 * @param {ServerKind} kind
 * @returns {Promise<TestServer>}
 */
export async function startServer(kind) {
  const directory = mkdtempSync(join(reachableTmpdir(), `skein-${kind.name.toLowerCase()}-`));
  try {
    if (kind.owner?.uid !== undefined) chownSync(directory, kind.owner.uid, kind.owner.gid ?? kind.owner.uid);
    await kind.prepare(directory);
    for (let start = 1; ; start++) {
      const place = { kind, directory, port: await freePort() };
      try {
        return serverOf(place, await launch(place));
      } catch (error) {
        // Between the look and the start, someone else may have taken the port.
        if (start === startsMax) throw error;
      }
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw new SetupError(`${kind.name} could not be started for the tests: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * Runs `body` while there is a server for all tests to share: the one that an environment variable names, or one that is
 * started for it and named there.
 * @template T
 * @param {{ variable: string, name: string, start: () => Promise<{ url: string, stop: () => Promise<void> }> }} shared
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withServer({ variable, name, start }, body) {
  if (process.env[variable]) return body();
  console.log(`Starting ${name} for the tests.`);
  const server = await start();
  process.env[variable] = server.url;
  try {
    return await body();
  } finally {
    await server.stop();
  }
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

/**
 * @param {Place} place
 * @param {Running} first
 * @returns {TestServer}
 */
function serverOf(place, first) {
  /** @type {Running | null} */
  let running = first;
  /** @param {"keep" | "stop"} word */
  const end = async (word) => {
    const ending = running;
    running = null;
    await ending?.end(word);
  };
  const pid = () => Number(readFileSync(join(place.directory, place.kind.pidFile), "utf8").split("\n")[0]);
  return {
    port: place.port,
    pid,
    stop: async () => {
      await end("stop");
      rmSync(place.directory, { recursive: true, force: true });
    },
    halt: () => end("keep"),
    resume: async () => {
      running = await relaunch(place);
    },
    crash: (signal = "SIGKILL") => void process.kill(pid(), signal),
  };
}

/** @param {Place} place */
async function relaunch(place) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await launch(place);
    } catch (error) {
      // What is left of a killed server may hold its memory for a moment.
      if (attempt === resumesMax) throw error;
      await wait(resumeWaitMs);
    }
  }
}

/**
 * Starts the server and resolves once it takes connections.
 * @param {Place} place
 * @returns {Promise<Running>}
 */
async function launch({ kind, directory, port }) {
  const child = spawn("sh", ["-c", guard, "sh", directory, kind.signal, ...kind.command(directory, port)], {
    ...kind.owner,
    cwd: directory,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const closed = once(child, "close");
  child.stdin.on("error", () => {});
  /** @param {"keep" | "stop"} word */
  const end = async (word) => {
    child.stdin.end(`${word}\n`);
    const timer = setTimeout(() => descendantsOf(child.pid ?? 0).forEach(({ pid }) => void endProcess(pid)), stopMsMax);
    await closed;
    clearTimeout(timer);
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
 * Resolves once the server says that it takes connections, and takes one.
 * @param {import("node:stream").Readable} output of the server alone
 * @param {number} port
 * @returns {Promise<void>}
 */
function untilReady(output, port) {
  return new Promise((resolve, reject) => {
    let said = "";
    const fail = () => reject(new Error(`the server on port ${port} said ${said.trim().slice(-500) || "nothing"}`));
    const timer = setTimeout(fail, startMsMax);
    /** @param {Buffer} chunk */
    const listen = (chunk) => {
      said += chunk;
      if (!/ready to accept connections/i.test(said)) return;
      clearTimeout(timer);
      // What it says from here on is read, so that it never waits to say it, and forgotten.
      output.off("data", listen).resume();
      untilConnected(port).then(resolve, reject);
    };
    output.on("data", listen);
    output.once("end", () => {
      clearTimeout(timer);
      fail();
    });
  });
}

/** @param {number} port */
async function untilConnected(port) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
}
