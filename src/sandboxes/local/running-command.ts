import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { uuidv7 } from "../../internal/uuid.ts";
import { show } from "../../session/errors.ts";
import { type ExecResult, SandboxError } from "../../session/sandbox/sandbox.ts";
import { KeptOutput } from "./kept-output.ts";
import { COMMAND_VARIABLE, ProcessFamily } from "./process-family.ts";

/** How long to wait for remaining output after a command has ended, before its remaining processes are killed. */
const OUTPUT_GRACE_MS = 200;
const CLOSE_MS_MAX = 1_000;
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A command to start. */
export interface CommandPlan {
  readonly program: string;
  readonly arguments: readonly string[];
  /** The command as the caller wrote it, for messages. */
  readonly name: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string | Uint8Array | null;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
}

type Output = { readonly stdout: string; readonly stderr: string };
type Ending =
  | { readonly type: "exited"; readonly exitCode: number }
  | { readonly type: "stopped"; readonly reason: (output: Output) => unknown };

/** A running command, as the leader of a new process group. */
export class RunningCommand {
  /** Settles when the command and all processes that it started have ended. */
  readonly result: Promise<ExecResult>;
  readonly #plan: CommandPlan;
  readonly #stdout = new KeptOutput();
  readonly #stderr = new KeptOutput();
  readonly #startedAt = performance.now();
  #end: (ending: Ending) => void = () => {};

  /** Starts the command synchronously. If it cannot be started, `result` rejects. */
  constructor(plan: CommandPlan) {
    this.#plan = plan;
    const ended = new Promise<Ending>((resolve) => {
      this.#end = resolve;
    });
    this.result = this.#run(ended);
  }

  /** Kills the command; `result` then rejects with the reason. Does nothing after it has ended. */
  stop(reason: (output: Output) => unknown): void {
    this.#end({ type: "stopped", reason });
  }

  async #run(ended: Promise<Ending>): Promise<ExecResult> {
    const commandId = uuidv7();
    const child = this.#start(commandId);
    const failed = new Promise<Error>((resolve) => child.once("error", resolve));
    if (child.pid === undefined) throw this.#unstarted(await failed);
    const family = new ProcessFamily(child.pid, commandId);
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
    const { timeoutMs, signal } = this.#plan;
    const timer = setTimeout(() => this.stop((output) => this.#tooLate(output)), Math.min(timeoutMs, TIMER_MS_MAX));
    const onAbort = (): void => this.stop(() => signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const ending = await ended;
      if (ending.type === "exited") await Promise.race([closed, wait(OUTPUT_GRACE_MS)]);
      await family.end(ending.type === "exited" ? 1 : 2);
      // Bounded: a process that cannot be found or killed may keep the output open.
      await Promise.race([closed, wait(CLOSE_MS_MAX)]);
      if (ending.type === "stopped") throw ending.reason(this.#output());
      const elapsedMs = Math.round(performance.now() - this.#startedAt);
      const truncated = this.#stdout.truncated || this.#stderr.truncated;
      return { exitCode: ending.exitCode, ...this.#output(), elapsedMs, truncated };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    }
  }

  #start(commandId: string): ChildProcess {
    const { program, arguments: list, cwd, env, stdin } = this.#plan;
    let child: ChildProcess;
    try {
      child = spawn(program, list, {
        cwd,
        env: { ...env, [COMMAND_VARIABLE]: commandId },
        detached: true,
        stdio: [stdin === null ? "ignore" : "pipe", "pipe", "pipe"],
      });
    } catch (error) {
      throw this.#unstarted(error as Error);
    }
    child.once("exit", (code, signal) => {
      const exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      this.#end({ type: "exited", exitCode });
    });
    child.stdout?.on("data", (chunk: Uint8Array) => this.#stdout.write(chunk));
    child.stderr?.on("data", (chunk: Uint8Array) => this.#stderr.write(chunk));
    // Ignored: a command may end or close its input before reading all of it.
    child.stdin?.on("error", () => {});
    child.stdin?.end(stdin);
    return child;
  }

  #output(): Output {
    return { stdout: this.#stdout.text(), stderr: this.#stderr.text() };
  }

  #tooLate(output: Output): SandboxError {
    const { name, timeoutMs } = this.#plan;
    return new SandboxError("timeout", `The command ${show(name)} took longer than ${timeoutMs} ms and was killed.`, {
      output,
    });
  }

  #unstarted(cause: Error): SandboxError {
    const { name, program } = this.#plan;
    const text = `The command ${show(name)} could not be started: ${show(program)} cannot be run (${cause.message}).`;
    return new SandboxError("os_error", text, { cause });
  }
}

/** Waits without keeping the process alive, because an unneeded timer is not cleared. */
function wait(ms: number): Promise<void> {
  return sleep(ms, undefined, { ref: false });
}
