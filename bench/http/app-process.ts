import type { AppMemory } from "../read-memory.ts";
import { startProcess } from "../start-process.ts";

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

/** An application that is served by a process of its own; disposing ends the process. */
export interface AppProcess extends AsyncDisposable {
  readonly url: string;
  memory(): Promise<AppMemory>;
}

/** Starts a process, so that whoever sends requests and whoever answers them do not share one. */
export async function startApp(input: AppInput): Promise<AppProcess> {
  const process = await startProcess("app", input);
  return {
    url: process.said as string,
    memory: () => process.ask("memory") as Promise<AppMemory>,
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}
