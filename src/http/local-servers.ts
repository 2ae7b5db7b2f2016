import { checkOptionsOf } from "../session/check-arguments.ts";
import { chmod, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasEnded, parseProcessIdentity, thisProcess } from "../internal/process-identity.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { SessionError, show } from "../session/errors.ts";
import { skeinHome } from "../tree/home.ts";

/** A server on this machine that made its own token, as `skein serve` does if it is given none. */
export interface LocalServer {
  readonly url: string;
  readonly token: string;
}

/**
 * Finds the server that runs on this machine for this user, as options for `createClient`: the one on `port`, or the one that was
 * started last; null if there is none.
 */
export async function findLocalServer(options: { readonly port?: number } = {}): Promise<LocalServer | null> {
  checkOptionsOf(options, { port: true }, "findLocalServer");
  const { port } = options;
  const servers = await listLocalServers();
  return servers.find(({ url }) => port === undefined || new URL(url).port === String(port)) ?? null;
}

/** All servers that run on this machine for this user and made their own token, the latest first. */
export async function listLocalServers(): Promise<readonly LocalServer[]> {
  const directory = serversDirectory();
  const names = (await isOwn(directory)) ? (await readdir(directory)).filter((name) => name.endsWith(".json")) : [];
  const found = await Promise.all(names.map((name) => readServer(join(directory, name))));
  return found
    .filter((server) => server !== null)
    .sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1))
    .map(({ url, token }) => ({ url, token }));
}

/**
 * Writes the URL and the token of a server of this process to a file that only its user can read. Disposing removes the file.
 *
 * @throws {SessionError} `INVALID_OPTION` if there is no directory that only the user can access.
 */
export async function announceServer({ url, token }: LocalServer): Promise<AsyncDisposable> {
  const directory = serversDirectory();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (!(await isOwn(directory))) {
    throw new SessionError("INVALID_OPTION", `The directory ${show(directory)} is not yours; set SKEIN_HOME to one.`);
  }
  await chmod(directory, 0o700);
  // Listing removes the files of servers that were killed.
  await listLocalServers();
  const path = join(directory, `${new URL(url).port}.json`);
  const made = `${path}.${uuidv7()}`;
  const text = JSON.stringify({
    url,
    token,
    startedAt: new Date().toISOString(),
    pid: thisProcess.pid,
    process: thisProcess,
  });
  await writeFile(made, text, { mode: 0o600, flag: "wx" });
  await rename(made, path);
  return {
    async [Symbol.asyncDispose]() {
      const now = await readFile(path, "utf8").catch(() => null);
      if (now === text) await rm(path, { force: true });
    },
  };
}

interface WrittenServer extends LocalServer {
  readonly startedAt: string;
}

/** Ignores a file that cannot be read, and removes the file of a process that has ended. */
async function readServer(path: string): Promise<WrittenServer | null> {
  try {
    const { url, token, startedAt, process } = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    const identity = parseProcessIdentity(JSON.stringify(process));
    if (typeof url !== "string" || typeof token !== "string" || typeof startedAt !== "string") return null;
    if (identity === null || !hasEnded(identity)) return { url, token, startedAt };
    await rm(path, { force: true });
  } catch {
    // The file was just removed, or is not a server's.
  }
  return null;
}

/** Never in the directory of a project: the token could end up in a repository. */
function serversDirectory(): string {
  return join(skeinHome(), "servers");
}

async function isOwn(directory: string): Promise<boolean> {
  try {
    const found = await lstat(directory);
    return found.isDirectory() && (process.getuid === undefined || found.uid === process.getuid());
  } catch {
    return false;
  }
}
