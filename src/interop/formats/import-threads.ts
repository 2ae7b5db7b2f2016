import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { SessionError } from "../../session/errors.ts";
import type { FormatName } from "./foreign-format.ts";
import { ReadReport } from "./foreign-report.ts";
import type { ImportedFile } from "./import-file.ts";
import type { ImportTarget } from "./stored-log.ts";

/** What a thread is started with. */
export interface ThreadStart {
  readonly storeUrl: string;
  readonly target: Omit<ImportTarget, "store">;
}

/** A file that a thread imports. */
export interface ThreadTask {
  readonly format: FormatName;
  readonly path: string;
}

/** What became of a file; a report is a plain object on its way, and an error says its code. */
export type ThreadAnswer =
  | { readonly done: ImportedFile }
  | { readonly failed: { readonly code: SessionError["code"] | null; readonly message: string } };

/** More threads only wait for each other, as they write into one store. */
const THREADS_MAX = 4;
/** What is sooner imported than threads have started. */
const BYTES_MIN = 8 * 1024 * 1024;
/** A file's objects die with it; in a large young generation most of them are never copied. */
const YOUNG_MB = 64;

// In the package, this is a module of dist/chunks. Put together here, so that no bundler takes the program for its own.
const PROGRAM = ["..", "interop", "formats", "import-thread.js"].join("/");

/** Threads that import files, each into the same store by a connection of its own. */
export class ImportThreads implements AsyncDisposable {
  readonly #threads: readonly ImportThread[];

  private constructor(threads: readonly ImportThread[]) {
    this.#threads = threads;
  }

  /** Null where threads would not pay, or cannot be started: where the package was bundled with a program. */
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
    const start: ThreadStart = { storeUrl, target };
    return new ImportThreads(Array.from({ length: count }, () => new ImportThread(fileURLToPath(program), start)));
  }

  /** How many files keep all of them busy. */
  get width(): number {
    return this.#threads.length * 2;
  }

  async import(task: ThreadTask): Promise<ImportedFile> {
    const [thread] = this.#threads.toSorted((a, b) => a.waiting - b.waiting);
    const answer = await (thread as ImportThread).ask(task);
    if ("done" in answer) return { ...answer.done, report: Object.assign(new ReadReport(), answer.done.report) };
    const { code, message } = answer.failed;
    throw code === null ? new Error(message) : new SessionError(code, message);
  }

  /** Waits for the files that are under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.end()));
  }
}

/** One thread, which takes one file after the other. */
class ImportThread {
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  /** Who waits for the files that it has, in their order. */
  readonly #waiting: { resolve(answer: ThreadAnswer): void; reject(error: unknown): void }[] = [];

  constructor(program: string, workerData: ThreadStart) {
    this.#worker = new Worker(program, { workerData, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    this.#worker.on("message", (answer: ThreadAnswer) => this.#waiting.shift()?.resolve(answer));
    this.#worker.on("error", (error) => this.#fail(error));
    this.#exited = new Promise((resolve) => {
      this.#worker.on("exit", () => {
        this.#fail(new Error("A thread that imports files has ended."));
        resolve();
      });
    });
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  ask(task: ThreadTask): Promise<ThreadAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(task);
    });
  }

  async end(): Promise<void> {
    this.#worker.postMessage(null);
    await this.#exited;
  }

  #fail(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
