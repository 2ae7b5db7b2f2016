import { setTimeout as sleep } from "node:timers/promises";
import { show } from "../../session/errors.ts";
import { type ExecResult, SandboxError } from "../../session/sandbox/sandbox.ts";
import type { RemoteEvent, RemoteSandbox } from "./opensandbox-client.ts";
import { type CommandScript, commandScript, killScript } from "./remote-script.ts";

/** A command, ready to be started. */
export interface RemoteCommand extends CommandScript {
  /** The command as the caller wrote it, for messages. */
  readonly name: string;
  /** The directory as the caller named it. */
  readonly cwdName: string;
  readonly timeoutMs: number;
  readonly signals: readonly AbortSignal[];
}

type Output = { readonly stdout: string; readonly stderr: string };

const ASK_MS_MAX = 60_000;
/** The server's timeout is longer than ours by this time. It only ends commands of a client that crashed. */
const SERVER_GRACE_MS = 10_000;
const END_MS_MAX = 5_000;
/** How long the script may take to report after its command's processes have ended; then it is interrupted. */
const REPORT_MS_MAX = 1_000;
const TIMER_MS_MAX: number = 2 ** 31 - 1 - SERVER_GRACE_MS;
/** Twice the size of a command's kept output as base64. */
const ANSWER_CHARACTERS_MAX: number = 2 * 1024 * 1024;

/** Runs scripts in a remote sandbox and reads the fields that they print. */
export class RemoteShell {
  readonly #remote: RemoteSandbox;

  constructor(remote: RemoteSandbox) {
    this.#remote = remote;
  }

  /** The fields of a short script. */
  async ask(script: string, timeoutMs: number = ASK_MS_MAX): Promise<readonly string[]> {
    const late = new AbortController();
    const answer = fieldsOf(this.#remote.run(script, timeoutMs));
    answer.catch(() => {});
    const tooLate = sleep(timeoutMs + SERVER_GRACE_MS, null, { signal: late.signal }).catch(() => null);
    const fields = await Promise.race([answer, tooLate]).finally(() => late.abort());
    if (fields === null) throw new SandboxError("timeout", `The sandbox ${this.#remote.id} did not answer in time.`);
    return fields;
  }

  /** Runs a command to its end, or ends it with everything that it started. */
  async run(command: RemoteCommand): Promise<ExecResult> {
    for (const signal of command.signals) signal.throwIfAborted();
    const startedAt = performance.now();
    let start: (id: string) => void = () => {};
    const started = new Promise<string>((resolve) => {
      start = resolve;
    });
    const timeoutMs = Math.min(command.timeoutMs, TIMER_MS_MAX);
    const answer = fieldsOf(this.#remote.run(commandScript(command), timeoutMs + SERVER_GRACE_MS), start);
    const settled = answer.then(
      () => null,
      () => null,
    );
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeoutMs);
    const ended = AbortSignal.any([stop.signal, ...command.signals]);
    const stopped = new Promise<void>((resolve) => ended.addEventListener("abort", () => resolve(), { once: true }));
    try {
      await Promise.race([settled, stopped]);
    } finally {
      clearTimeout(timer);
    }
    if (!ended.aborted) return resultOf(await answer, command, startedAt);
    const output = await this.#end(
      command,
      started,
      settled.then(() => answer),
    );
    for (const signal of command.signals) signal.throwIfAborted();
    const text = `The command ${show(command.name)} took longer than ${command.timeoutMs} ms and was killed.`;
    throw new SandboxError("timeout", text, output === null ? {} : { output });
  }

  /** Ends a command. Resolves to its output so far, or null if it cannot be read. */
  async #end(
    command: RemoteCommand,
    started: Promise<string>,
    answer: Promise<readonly string[]>,
  ): Promise<Output | null> {
    const answered = answer.catch(() => null);
    // Wait until the server has started it: a process that starts after the script has run would survive.
    const id = await Promise.race([started, answered.then(() => null), sleep(END_MS_MAX, null, { ref: false })]);
    await this.ask(killScript(command.commandId)).catch(() => {});
    const early = await Promise.race([answered.then(() => true), sleep(REPORT_MS_MAX, false, { ref: false })]);
    if (!early && id !== null) await this.#remote.interrupt(id).catch(() => {});
    const fields = await Promise.race([answered, sleep(END_MS_MAX, null, { ref: false })]);
    return fields === null || fields[0] !== "done" ? null : outputOf(fields);
  }
}

/** The fields that a script printed. The rest of the stream is drained in the background: some servers keep it open. */
async function fieldsOf(events: AsyncIterable<RemoteEvent>, started?: (id: string) => void): Promise<string[]> {
  const iterator = events[Symbol.asyncIterator]();
  let text = "";
  let problem = "the connection ended before it did";
  for (;;) {
    const { done, value } = await iterator.next();
    if (done === true) break;
    if (value.type === "init") started?.(value.text ?? "");
    if (value.type === "stdout") text += value.text ?? "";
    if (text.length > ANSWER_CHARACTERS_MAX)
      throw new SandboxError("os_error", "The sandbox sends more output than a script can print.");
    if (value.type === "error") problem = String(value.error?.["evalue"] ?? value.error?.["value"] ?? "unknown");
    if (value.type === "error" || value.type === "execution_complete") {
      void drain(iterator);
      break;
    }
  }
  const fields = text.replace(/\s+/g, "").split("|");
  if (fields.length === 2 || fields.at(-2) === "end") return fields;
  throw new SandboxError("os_error", `A command of the sandbox did not come to its end: ${problem}.`);
}

async function drain(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    while ((await iterator.next()).done !== true);
  } catch {
    // Errors after the answer do not matter.
  }
}

function resultOf(fields: readonly string[], command: RemoteCommand, startedAt: number): ExecResult {
  const { name, cwdName } = command;
  switch (fields[0]) {
    case "done":
      break;
    case "missing":
      throw new SandboxError("file_not_found", `The path ${show(cwdName)} was not found in the sandbox.`);
    case "outside":
      throw new SandboxError("not_permitted", `The path ${show(cwdName)} is outside of the sandbox.`);
    case "not-directory":
      throw new SandboxError("os_error", `The path ${show(cwdName)} is not a directory, so no command can run in it.`);
    case "unstarted":
      throw new SandboxError("os_error", `The command ${show(name)} could not be started: there is no such program.`);
    default:
      throw new SandboxError("os_error", `The sandbox could not run the command ${show(name)}.`);
  }
  const elapsedMs = Math.round(performance.now() - startedAt);
  const truncated = fields[4] !== "" || fields[7] !== "";
  return { exitCode: Number(fields[1]), ...outputOf(fields), elapsedMs, truncated };
}

function outputOf(fields: readonly string[]): Output {
  return { stdout: streamText(fields.slice(2, 5)), stderr: streamText(fields.slice(5, 8)) };
}

function streamText([bytes = "0", head = "", tail = ""]: readonly string[]): string {
  const start = Buffer.from(head, "base64");
  if (tail === "") return start.toString("utf8");
  const end = Buffer.from(tail, "base64");
  // Do not split a character: drop incomplete bytes at the end of the head and at the start of the tail.
  let from = 0;
  while (from < 3 && ((end[from] ?? 0) & 0xc0) === 0x80) from += 1;
  const leftOut = Number(bytes) - start.length - end.length + from;
  const shown = new TextDecoder().decode(start, { stream: true });
  return `${shown}\n[${leftOut} bytes were left out here]\n${end.toString("utf8", from)}`;
}
