import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { AppInput } from "./app-process.ts";

/** The token of the user whose requests are measured. */
export const BENCH_TOKEN = "the-token-of-the-benchmark";

/** Serves the build of a revision to one user with a token, and resolves to its URL. */
export async function serveRevision({ build = "", folder }: AppInput): Promise<string> {
  const load = (path: string): Promise<unknown> => import(pathToFileURL(join(build, path)).href);
  const { createAgent, SessionManager } = (await load("index.js")) as typeof import("skein");
  const { createServer } = (await load("http/index.js")) as typeof import("skein/http");
  const { offline } = (await load("models/index.js")) as typeof import("skein/offline");
  const { openSqliteStore } = (await load("stores/sqlite/index.js")) as typeof import("skein/sqlite");
  const store = await openSqliteStore({ path: join(folder, "sessions.db") });
  const config = { maxTurnsPerSession: Number.MAX_SAFE_INTEGER, maxSessionsPerUser: Number.MAX_SAFE_INTEGER };
  const server = await createServer({
    manager: new SessionManager({ store, config }),
    agents: [createAgent({ name: "talker", prompt: "Talk.", model: offline(), builtInTools: false })],
    tokens: [{ token: BENCH_TOKEN, userId: "bench" }],
    limits: { rate: null },
  });
  return server.listen();
}
