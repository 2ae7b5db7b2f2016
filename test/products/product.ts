import { type ChildProcessWithoutNullStreams, type SpawnOptions, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packPackage, unpackPackage } from "../packed-package.ts";

/** Only what hangs takes this long. */
const WAIT_MS_MAX = 120_000;

/** A program of a product, as its user starts it. */
export interface Program {
  readonly child: ChildProcessWithoutNullStreams;
  /** Its output, errors included. */
  readonly printed: () => string;
  /** Resolves to the whole output once it satisfies `condition`; rejects if the program ends before. */
  readonly until: (condition: (printed: string) => boolean) => Promise<string>;
  /** Resolves to the exit code, or to the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/** A product in a separate folder, with the packed package and its dependencies beside it. */
export interface Product extends AsyncDisposable {
  readonly folder: string;
  start(args: readonly string[], options?: Pick<SpawnOptions, "cwd" | "env">): Program;
  /** Runs a program to its end, and resolves to its output; rejects for a failure. */
  run(args: readonly string[], options?: Pick<SpawnOptions, "cwd" | "env">): Promise<string>;
}

/** Copies the files of a product into a folder outside of the checkout, and installs the packed package there. */
export async function openProduct(name: string, packages: readonly string[], env: NodeJS.ProcessEnv): Promise<Product> {
  const folder = await mkdtemp(join(tmpdir(), `skein-${name}-`));
  await cp(fileURLToPath(new URL(name, import.meta.url)), folder, { recursive: true });
  await mkdir(join(folder, "packed"));
  await unpackPackage(await packPackage(join(folder, "packed")), folder, packages);
  const programs: Program[] = [];
  // API keys of the developer would send requests that cost money.
  const base = { ...process.env, ANTHROPIC_API_KEY: "", SKEIN_STORE: "", NO_COLOR: "1", ...env };
  const start: Product["start"] = (args, options = {}) => {
    const home = join(folder, "home");
    const child = spawn(process.execPath, args, {
      cwd: folder,
      ...options,
      env: { ...base, SKEIN_HOME: home, ...options.env },
    });
    let text = "";
    let isOver = false;
    const changed = new EventEmitter();
    const ended = once(child, "close").then(([code, signal]) => {
      isOver = true;
      changed.emit("change");
      return (signal ?? code) as number | NodeJS.Signals;
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        changed.emit("change");
      });
    }
    const until: Program["until"] = async (condition) => {
      const signal = AbortSignal.timeout(WAIT_MS_MAX);
      while (!condition(text)) {
        if (isOver) throw new Error(`${args.join(" ")} ended and has printed only:\n${text}`);
        await once(changed, "change", { signal }).catch((cause: unknown) => {
          throw new Error(`${args.join(" ")} has printed only:\n${text}`, { cause });
        });
      }
      return text;
    };
    const program: Program = { child, printed: () => text, until, ended };
    programs.push(program);
    return program;
  };
  return {
    folder,
    start,
    async run(args, options) {
      const { child, ended, printed } = start(args, options);
      child.stdin.end();
      const code = await ended;
      if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}:\n${printed()}`);
      return printed();
    },
    async [Symbol.asyncDispose]() {
      for (const { child } of programs) child.kill("SIGKILL");
      await Promise.all(programs.map(({ ended }) => ended));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
