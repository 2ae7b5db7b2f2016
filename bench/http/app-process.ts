import type { AppMemory, AppPeak } from "../read-memory.ts";
import { startProcess } from "../start-process.ts";

/** The number of entries on a page. */
export const PAGE_ENTRIES = 100;

/** The application that a process serves, and its store. */
export interface AppInput {
  /**
   * `plain` answers with a little JSON; `session` as well, with the session of the request's cookie, whose state it
   * reads again at `/state`; `page` answers with a page of entries from memory; `server` is the whole server, and
   * `studio` is that with the studio and an agent whose model answers immediately; `revision` is a server for users
   * with a token, with such an agent, of the build in `build`.
   */
  readonly kind: "plain" | "session" | "page" | "server" | "studio" | "revision";
  readonly folder: string;
  /** The store on a server, in place of one in the folder. */
  readonly server?: { readonly url: string; readonly prefix: string };
  readonly sessionId: string;
  /** The folder of the build, for `revision`. */
  readonly build?: string;
}

/** An application in a separate process; disposing it ends the process. */
export interface AppProcess extends AsyncDisposable {
  readonly url: string;
  memory(): Promise<AppMemory>;
  /** The most memory since the last call, and the memory now after a garbage collection. */
  resetPeak(): Promise<AppPeak>;
}

/** Starts a process, so that the client and the server of requests do not share one. */
export async function startApp(input: AppInput): Promise<AppProcess> {
  const process = await startProcess("app", input);
  return {
    url: process.said as string,
    memory: () => process.ask("memory") as Promise<AppMemory>,
    resetPeak: () => process.ask("peak") as Promise<AppPeak>,
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}
