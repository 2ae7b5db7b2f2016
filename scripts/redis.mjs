import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { SetupError } from "./run.mjs";
import { startServer, withServer } from "./test-server.mjs";

const password = "not-a-secret";
const programs = ["redis-server", "valkey-server"];

/**
 * @typedef {import("./test-server.mjs").TestServer & { readonly url: string }} RedisServer the URL contains the
 * password
 */

/** Why Redis is missing; null if it is installed. */
export function redisMissing() {
  if (process.platform === "win32") return "there is no Redis for Windows";
  return redisProgram() === null ? "redis-server is not installed and SKEIN_TEST_REDIS_URL is not set" : null;
}

/**
 * Starts a separate Redis for this checkout.
 * @param {readonly string[]} [flags] further settings
 * @param {import("./small-disk.mjs").SmallDisk} [disk] the disk for its data
 * @returns {Promise<RedisServer>}
 */
export async function startRedis(flags = [], disk) {
  const program = redisProgram();
  if (program === null)
    throw new SetupError("There is no Redis here; install redis-server or set SKEIN_TEST_REDIS_URL.");
  const server = await startServer({
    name: "Redis",
    signal: "TERM",
    pidFile: "data/redis.pid",
    prepare: async (directory) => mkdirSync(join(directory, "data")),
    command: (directory, port) => {
      const command = commandOf(program, directory, port, flags);
      return disk?.hold(join(directory, "data"), command) ?? command;
    },
  });
  return { ...server, url: `redis://:${password}@127.0.0.1:${server.port}` };
}

/**
 * Runs `body` with a server that all tests share. Without an installed Redis, the tests that need one are skipped with
 * the reason.
 * @template T
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withRedis(body) {
  if (redisMissing() !== null) return body();
  return withServer({ variable: "SKEIN_TEST_REDIS_URL", name: "Redis", start: startRedis }, body);
}

/**
 * @param {string} program
 * @param {string} directory
 * @param {number} port
 * @param {readonly string[]} flags
 */
function commandOf(program, directory, port, flags) {
  return [
    ...[program, "--bind", "127.0.0.1", "--port", String(port), "--requirepass", password, "--masterauth", password],
    ...["--dir", join(directory, "data"), "--pidfile", join(directory, "data/redis.pid")],
    // Redis writes its process id only if it is daemonized or, as here, a pidfile is set.
    ...["--daemonize", "no", "--save", "", "--appendonly", "no", ...flags],
  ];
}

function redisProgram() {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return (
    programs.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path)) ?? null
  );
}
