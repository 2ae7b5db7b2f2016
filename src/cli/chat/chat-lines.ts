import { createInterface, type Interface } from "node:readline";
import { CHAT_COMMANDS } from "./chat-commands.ts";
import type { Word } from "./chat-turns.ts";

const HISTORY_LINES_MAX = 500;

/** The streams that a chat reads lines from and prints its prompt to. */
export interface ChatLinesInit {
  readonly input: NodeJS.ReadableStream;
  /** Shows the prompt and echoes the input; null if no person types. */
  readonly terminal: NodeJS.WritableStream | null;
  /** Aborts the current work; returns whether there was any. */
  interrupt(): boolean;
}

interface PendingRead {
  readonly prompt: () => string;
  readonly resolve: (line: string | null) => void;
  readonly confirms: boolean;
}

/**
 * Reads the lines that a person types or that come through a pipe.
 *
 * - At a terminal, Ctrl-C stops the current work. At the prompt the first Ctrl-C prints how to leave, and the second
 *   one leaves.
 * - Lines typed during work are queued. They are never read as the answer to a question.
 */
export class ChatLines implements Disposable {
  readonly #init: ChatLinesInit;
  readonly #reader: Interface;
  readonly #typedAhead: string[] = [];
  #pending: PendingRead | null = null;
  #warned = false;
  #closed = false;

  constructor(init: ChatLinesInit) {
    const { input, terminal } = init;
    this.#init = init;
    this.#reader = createInterface({
      input,
      ...(terminal === null ? {} : { output: terminal, terminal: true, completer: completeCommand }),
      historySize: HISTORY_LINES_MAX,
    });
    this.#reader.on("line", (line) => this.#accept(line));
    this.#reader.on("close", () => this.#end());
    this.#reader.on("SIGINT", () => this.#interrupted());
  }

  /** The next line; null after the last one. */
  async next(prompt: () => string): Promise<string | null> {
    const line = this.#typedAhead.shift();
    return line ?? this.#wait({ prompt, confirms: false });
  }

  /**
   * Asks a yes-or-no question; `"nobody"` if no person can answer, `"stopped"` if the input ends or the work is
   * aborted.
   */
  async confirm(question: string): Promise<Word> {
    if (this.#init.terminal === null) return "nobody";
    for (;;) {
      const answer = (await this.#wait({ prompt: () => `${question} [y/n] `, confirms: true }))?.trim().toLowerCase();
      if (answer === undefined) return "stopped";
      if (answer === "y" || answer === "yes") return "yes";
      if (answer === "n" || answer === "no") return "no";
    }
  }

  /** Stops reading. */
  close(): void {
    this.#reader.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #wait({ prompt, confirms }: Omit<PendingRead, "resolve">): Promise<string | null> {
    if (this.#closed) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#pending = { prompt, resolve, confirms };
      this.#showPrompt();
    });
  }

  #accept(line: string): void {
    this.#warned = false;
    if (this.#pending === null) this.#typedAhead.push(line);
    else this.#answer(line);
  }

  #answer(line: string | null): void {
    const pending = this.#pending;
    this.#pending = null;
    pending?.resolve(line);
  }

  #end(): void {
    this.#closed = true;
    // Through a pipe, all lines may have arrived before the first is answered, so running work is not aborted.
    if (this.#init.terminal !== null) {
      this.#init.terminal.write("\n");
      this.#init.interrupt();
    }
    this.#answer(null);
  }

  #interrupted(): void {
    if (this.#init.interrupt()) {
      if (this.#pending?.confirms === true) this.#answer(null);
      return;
    }
    if (this.#warned) {
      this.close();
      return;
    }
    this.#warned = true;
    // Clears the input: moves the cursor to the end of the line, then deletes everything before it.
    this.#reader.write(null, { ctrl: true, name: "e" });
    this.#reader.write(null, { ctrl: true, name: "u" });
    this.#init.terminal?.write("\nPress Ctrl-C again to leave, or Ctrl-D, or type /quit.\n");
    this.#showPrompt();
  }

  #showPrompt(): void {
    if (this.#init.terminal === null || this.#pending === null) return;
    this.#reader.setPrompt(this.#pending.prompt());
    this.#reader.prompt(true);
  }
}

/** The command names that complete a line. */
function completeCommand(line: string): [completions: string[], completed: string] {
  const names = line.startsWith("/") ? Object.keys(CHAT_COMMANDS).map((name) => `/${name} `) : [];
  return [names.filter((name) => name.startsWith(line)), line];
}
