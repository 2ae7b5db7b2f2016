import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { CHILD_FLAG } from "../run-in-child.ts";

const main = fileURLToPath(new URL("../main.js", import.meta.url));

/** How many entries a page has. */
export const PAGE_ENTRIES = 100;

/** What a process serves, and on which store. */
export interface AppInput {
  /**
   * `plain` answers with a little JSON; `session` does so too, with the session of the request's cookie, whose state it
   * reads anew at `/state`; `page` answers with a page of entries that it holds in memory; `server` is the whole server, and
   * `studio` is that with the program for browsers and an agent whose model answers at once; `revision` is a server for users
   * with a token, with such an agent, of the build in `build`.
   */
  readonly kind: "plain" | "session" | "page" | "server" | "studio" | "revision";
  readonly folder: string;
  readonly sessionId: string;
  /** Where the build is, for `revision`. */
  readonly build?: string;
}

/** What the process holds after all garbage was collected. */
export interface AppMemory {
  /** Heap and external memory of JavaScript. */
  readonly heldBytes: number;
  /** All memory of the process. */
  readonly residentBytes: number;
}

/** An application that is served by a process of its own; disposing ends the process. */
export interface AppProcess extends AsyncDisposable {
  readonly url: string;
  memory(): Promise<AppMemory>;
}

/** Starts a process, so that whoever sends requests and whoever answers them do not share one. */
export async function startApp(input: AppInput): Promise<AppProcess> {
  const child = fork(main, [CHILD_FLAG, "app", JSON.stringify(input)], {
    execArgv: ["--expose-gc", "--no-warnings"],
    stdio: ["ignore", 2, 2, "ipc"],
  });
  const url = (await replyOf(child)) as string;
  return {
    url,
    memory: () => {
      child.send("memory");
      return replyOf(child) as Promise<AppMemory>;
    },
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}

async function replyOf(child: ChildProcess): Promise<unknown> {
  const stopped = new AbortController();
  const { signal } = stopped;
  const ended = once(child, "exit", { signal }).then(([code, killed]) => {
    throw new Error(`An application of the benchmark ended with ${killed ?? `exit code ${code}`}.`);
  });
  const replied = once(child, "message", { signal }).then(([reply]: unknown[]) => reply);
  try {
    return await Promise.race([replied, ended]);
  } finally {
    // Whichever has not come about is given up, and nobody hears of that.
    for (const each of [replied, ended]) each.catch(() => {});
    stopped.abort();
  }
}
