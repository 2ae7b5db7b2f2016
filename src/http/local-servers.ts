import { checkOptionsOf } from "../session/check-arguments.ts";
import { chmod, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasEnded, parseProcessIdentity, thisProcess } from "../internal/process-identity.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { SessionError, show } from "../session/errors.ts";
import { skeinHome } from "../tree/home.ts";

/** A server of this machine that made its own token, as `skein serve` does where it is given none. */
export interface LocalServer {
  readonly url: string;
  readonly token: string;
}

/**
 * The server that runs on this machine for this user, as `createClient` takes it: the one on a port, or the one that was
 * started last; null where there is none.
 */
export async function findLocalServer(options: { readonly port?: number } = {}): Promise<LocalServer | null> {
  checkOptionsOf(options, { port: true }, "findLocalServer");
  const { port } = options;
  const servers = await listLocalServers();
  return servers.find(({ url }) => port === undefined || new URL(url).port === String(port)) ?? null;
}

/** Every server that runs on this machine for this user and made its own token, the latest first. */
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
 * Writes down where a server of this process is and what lets its user in, where only they can read it. Disposing takes it
 * away again.
 *
 * @throws {SessionError} `INVALID_OPTION` where there is no directory that is the user's alone.
 */
export async function announceServer({ url, token }: LocalServer): Promise<AsyncDisposable> {
  const directory = serversDirectory();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (!(await isOwn(directory))) {
    throw new SessionError("INVALID_OPTION", `The directory ${show(directory)} is not yours; set SKEIN_HOME to one.`);
  }
  await chmod(directory, 0o700);
  // Looking is what takes those of servers away that were killed.
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

/** A file that cannot be read is passed over; that of a process that has ended is removed. */
async function readServer(path: string): Promise<WrittenServer | null> {
  try {
    const { url, token, startedAt, process } = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    const identity = parseProcessIdentity(JSON.stringify(process));
    if (typeof url !== "string" || typeof token !== "string" || typeof startedAt !== "string") return null;
    if (identity === null || !hasEnded(identity)) return { url, token, startedAt };
    await rm(path, { force: true });
  } catch {
    // It was just removed, or is none of ours.
  }
  return null;
}

/** Not in a project's own directory: what is there may end up in a repository. */
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
