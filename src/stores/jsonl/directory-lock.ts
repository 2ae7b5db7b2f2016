import { dirname, join } from "node:path";
import { makePrivateDirectory } from "../../internal/private-file.ts";
import { SessionError } from "../../session/errors.ts";
import { LockedQueue } from "./locked-queue.ts";
import { INDEX_FOLDER } from "./places.ts";
import { storeFailed } from "./store-failure.ts";

interface Task {
  readonly run: () => Promise<void>;
  readonly reject: (error: unknown) => void;
}

/** Lets one caller at a time, of all processes, change which sessions a directory has. */
export class DirectoryLock {
  readonly #queue: LockedQueue<Task>;
  readonly #path: string;

  constructor(directory: string, options: { readonly lockTimeoutMs: number }) {
    this.#path = join(directory, INDEX_FOLDER, "directory.lock");
    const work = {
      begin: async (): Promise<void> => {},
      end: async (): Promise<void> => {},
      run: async (tasks: Task[]): Promise<() => void> => {
        for (const { run, reject } of tasks) await run().catch(reject);
        return () => {};
      },
      refuse: ({ reject }: Task, error: unknown): void => reject(error),
      busy: ({ pid, host }: { readonly pid: number; readonly host: string }): Error =>
        new SessionError(
          "SESSION_BUSY",
          `${directory} is in use by process ${pid} on ${host}; try again when it is done.`,
        ),
    };
    this.#queue = new LockedQueue(this.#path, work, options);
  }

  /** Runs a task while no other one does. The directory is there by then. */
  async exclusively<T>(task: () => Promise<T>): Promise<T> {
    try {
      await makePrivateDirectory(dirname(this.#path));
    } catch (cause) {
      throw storeFailed(`${dirname(this.#path)} could not be made`, cause);
    }
    return new Promise((resolve, reject) => this.#queue.push({ run: () => task().then(resolve), reject }));
  }

  /** Stays the same for as long as no other holder can have changed the directory. */
  get generation(): number {
    return this.#queue.generation;
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}
