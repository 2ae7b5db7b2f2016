import type { SessionStore } from "../../session/store.ts";
import { ALL_PROGRAMS, type FoundProgram, findPrograms } from "./find-programs.ts";
import { followFiles } from "./follow-files.ts";
import type { FormatName } from "./foreign-format.ts";
import { foreignFormat } from "./formats.ts";
import type { ImportCache } from "./import-cache.ts";
import { importFiles } from "./import-files.ts";

/** The result is cached for this time, so that a page that polls does not keep the disk busy. */
const FOUND_FOR_MS = 10_000;

/** The store that programs are imported to, and for whom. */
export interface ProgramImportsInit {
  readonly store: SessionStore;
  readonly storeUrl: string;
  readonly userId: string;
  /** Opens the cache of what earlier imports have read. */
  readonly openCache: () => Promise<ImportCache>;
  /** Ends imports and following. */
  readonly signal: AbortSignal;
  readonly onFailure: (error: unknown, path: string) => void;
}

/** How far the import of a program is. */
export interface ImportProgress {
  /** `queued` behind the import of another program; `following` once all of its files were read. */
  readonly state: "queued" | "importing" | "following" | "failed";
  /** How many files were read, of how many; 0 of 0 until they are counted. */
  readonly read: number;
  readonly files: number;
  /** Why it failed. */
  readonly problem: string | null;
}

/** A program on this machine, and its import; null if none was begun. */
export interface ProgramState extends FoundProgram {
  readonly progress: ImportProgress | null;
}

/**
 * Imports the sessions of programs on this machine into one store, one program after the other, and follows them until the signal
 * aborts. No file is opened before `begin`.
 */
export class ProgramImports {
  readonly #init: ProgramImportsInit;
  readonly #progress = new Map<FormatName, ImportProgress>();
  #found: { readonly programs: Promise<readonly FoundProgram[]>; readonly atMs: number } | null = null;
  #cache: Promise<ImportCache> | null = null;
  /** The end of the imports that were begun. */
  #imports: Promise<void> = Promise.resolve();
  readonly #following: Promise<void>[] = [];

  constructor(init: ProgramImportsInit) {
    this.#init = init;
  }

  /** The programs on this machine, with the progress of their imports. */
  async programs(): Promise<readonly ProgramState[]> {
    if (this.#found === null || performance.now() - this.#found.atMs > FOUND_FOR_MS)
      this.#found = { programs: findPrograms({ dates: true }), atMs: performance.now() };
    const programs = await this.#found.programs;
    return programs.map((program) => ({ ...program, progress: this.#progress.get(program.name) ?? null }));
  }

  /** Starts to import and follow programs; imports that are already running continue, unless they have failed. */
  begin(names: readonly FormatName[]): void {
    const fresh = names.filter((name) => (this.#progress.get(name)?.state ?? "failed") === "failed");
    for (const name of fresh) this.#set(name, { state: "queued", read: 0, files: 0, problem: null });
    this.#imports = this.#imports.then(async () => {
      for (const name of fresh) await this.#importProgram(name);
    });
  }

  /** Resolves after the signal has aborted, when nothing is imported any more. */
  async ended(): Promise<void> {
    await this.#imports;
    await Promise.all(this.#following);
  }

  #set(name: FormatName, change: Partial<ImportProgress>): void {
    const before = this.#progress.get(name) ?? { state: "queued", read: 0, files: 0, problem: null };
    this.#progress.set(name, { ...before, ...change });
  }

  async #importProgram(name: FormatName): Promise<void> {
    const { store, storeUrl, userId, signal, onFailure } = this.#init;
    if (signal.aborted) return;
    const [target, format] = [{ store, userId }, foreignFormat(name)];
    this.#set(name, { state: "importing" });
    try {
      // A program that was not used yet has no files; it is followed all the same.
      const isUsed = (await findPrograms()).some((found) => found.name === name && found.sessions !== null);
      const cache = await (this.#cache ??= this.#init.openCache());
      for await (const { number, files } of isUsed ? importFiles(target, { format, cache, storeUrl, signal }) : [])
        this.#set(name, { read: number, files });
      await cache.save().catch((error: unknown) => onFailure(error, "The list of what was imported"));
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error, format.home());
      this.#set(name, { state: "failed", problem: (error as Error).message });
      return;
    }
    this.#set(name, { state: "following" });
    this.#following.push(followFiles(target, [{ format }], { signal, onFailure }));
  }
}

/** The names of programs in a text such as `claude-code,codex`, or `all`. @throws {SessionError} `INVALID_OPTION`. */
export function programsIn(text: string): readonly FormatName[] {
  const names = text.split(",").map((name) => name.trim());
  return names.flatMap((name) => (name === "all" ? ALL_PROGRAMS : [foreignFormat(name).name]));
}
