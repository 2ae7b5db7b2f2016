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
 * Stops the server when the process that started it closes its standard input or dies, however that happens, also by a
 * signal to the process group. The directory is deleted with it, unless the last word was "keep". Only the server has
 * its output open, which therefore ends with the server.
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
 * A separate server for this checkout on 127.0.0.1.
 * @typedef {object} TestServer
 * @property {number} port
 * @property {() => number} pid the process id of the server itself
 * @property {() => Promise<void>} stop stops it and deletes its data
 * @property {() => Promise<void>} halt stops it and keeps its data
 * @property {() => Promise<void>} resume starts it again on the same port
 * @property {(signal?: NodeJS.Signals) => void} crash sends it a signal; by default SIGKILL, as in a power cut
 */

/**
 * A kind of server: how it is started and stopped.
 * @typedef {object} ServerKind
 * @property {string} name
 * @property {string} signal the signal that stops it, without SIG
 * @property {string} pidFile the file in its directory with its process id in the first line
 * @property {{ uid?: number, gid?: number }} [owner] the account that it runs as
 * @property {(directory: string) => Promise<void>} prepare prepares its directory
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
        // Between the check and the start, another process may have taken the port.
        if (start === startsMax) throw error;
      }
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw new SetupError(`${kind.name} could not be started for the tests: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * Runs `body` with a server that all tests share: the one that an environment variable names, or a new one, which is
 * then set in that variable.
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
 * A free port of 127.0.0.1.
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
      // The rest of a killed server may hold its memory for a moment.
      if (attempt === resumesMax) throw error;
      await wait(resumeWaitMs);
    }
  }
}

/**
 * Starts the server; resolves when it accepts connections.
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
 * Resolves when the server logs that it accepts connections, and accepts one.
 * @param {import("node:stream").Readable} output the output of the server
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
      // Further output is read and discarded, so that the server never blocks on a full pipe.
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
