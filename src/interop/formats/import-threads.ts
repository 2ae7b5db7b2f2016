import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { SessionError } from "../../session/errors.ts";
import type { FormatName } from "./foreign-format.ts";
import { ReadReport } from "./foreign-report.ts";
import type { ImportedFile } from "./import-file.ts";
import type { ImportTarget } from "./stored-log.ts";

/** The `workerData` of a thread. */
export interface ThreadStart {
  readonly storeUrl: string;
  readonly target: Omit<ImportTarget, "store">;
}

/** The message that asks a thread to import a file. */
export interface ThreadTask {
  readonly format: FormatName;
  readonly path: string;
}

/** The answer to a task. The report arrives as a plain object (structured clone), an error as its code and message. */
export type ThreadAnswer =
  | { readonly path: string; readonly done: ImportedFile }
  | {
      readonly path: string;
      readonly failed: { readonly code: SessionError["code"] | null; readonly message: string };
    };

/** More threads would only wait for each other: they write into the same store. */
const THREADS_MAX = 4;
/** How many files a thread imports concurrently: while one waits to write, another is read. */
const FILES_AT_ONCE = 4;
/** Fewer bytes are imported faster than threads start. */
const BYTES_MIN = 8 * 1024 * 1024;
/** Objects parsed from a file are short-lived: with a large young generation the garbage collector rarely copies them. */
const YOUNG_MB = 64;

// Relative to a module of dist/chunks. Joined at runtime, so that a bundler does not treat it as an import.
const PROGRAM = ["..", "interop", "formats", "import-thread.js"].join("/");

/** A pool of worker threads that import files. Each thread opens the store itself. */
export class ImportThreads implements AsyncDisposable {
  readonly #threads: readonly ImportThread[];

  private constructor(threads: readonly ImportThread[]) {
    this.#threads = threads;
  }

  /** Null if the import is too small for threads, if no other thread can open the store, or if the package was bundled. */
  static start(
    { store, ...target }: ImportTarget,
    storeUrl: string,
    files: readonly { readonly size: number }[],
  ): ImportThreads | null {
    const program = new URL(PROGRAM, import.meta.url);
    const count = Math.min(availableParallelism(), THREADS_MAX, files.length);
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    const pays = count > 1 && bytes >= BYTES_MIN && store.capabilities.shared;
    if (!pays || program.protocol !== "file:" || !existsSync(program)) return null;
    const start = { storeUrl, target };
    return new ImportThreads(Array.from({ length: count }, () => new ImportThread(fileURLToPath(program), start)));
  }

  /** How many files must be submitted at once to keep all threads busy. */
  get filesAtOnce(): number {
    return this.#threads.length * FILES_AT_ONCE;
  }

  async importFile(task: ThreadTask): Promise<ImportedFile> {
    const [idlest] = this.#threads.toSorted((a, b) => a.filesAtOnce - b.filesAtOnce);
    const answer = await (idlest as ImportThread).ask(task);
    if ("done" in answer) return { ...answer.done, report: Object.assign(new ReadReport(), answer.done.report) };
    const { code, message } = answer.failed;
    throw code === null ? new Error(message) : new SessionError(code, message);
  }

  /** Waits for running imports, then ends the threads. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.end()));
  }
}

/** One worker thread and its pending files. */
class ImportThread {
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly #asked = new Map<string, { resolve(answer: ThreadAnswer): void; reject(error: Error): void }>();

  constructor(program: string, workerData: ThreadStart) {
    this.#worker = new Worker(program, { workerData, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    this.#worker.on("message", (answer: ThreadAnswer) => {
      this.#asked.get(answer.path)?.resolve(answer);
      this.#asked.delete(answer.path);
    });
    this.#worker.on("error", (error: Error) => this.#fail(error));
    this.#exited = new Promise((resolve) => {
      this.#worker.on("exit", () => {
        this.#fail(new Error("A thread that imports files has ended before it was done."));
        resolve();
      });
    });
  }

  get filesAtOnce(): number {
    return this.#asked.size;
  }

  ask(task: ThreadTask): Promise<ThreadAnswer> {
    return new Promise((resolve, reject) => {
      this.#asked.set(task.path, { resolve, reject });
      this.#worker.postMessage(task);
    });
  }

  async end(): Promise<void> {
    this.#worker.postMessage(null);
    await this.#exited;
  }

  #fail(error: Error): void {
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
  }
}
