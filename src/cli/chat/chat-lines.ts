import { createInterface, type Interface } from "node:readline";
import { CHAT_COMMANDS } from "./chat-commands.ts";
import type { Word } from "./chat-turns.ts";

const HISTORY_LINES_MAX = 500;

/** Where the lines of a chat come from. */
export interface ChatLinesInit {
  readonly input: NodeJS.ReadableStream;
  /** Where the prompt and what is typed are shown; null where nobody types. */
  readonly terminal: NodeJS.WritableStream | null;
  /** Stops what is under way; whether there was anything. */
  interrupt(): boolean;
}

interface Waiting {
  readonly prompt: () => string;
  readonly resolve: (line: string | null) => void;
  readonly confirms: boolean;
}

/**
 * The lines that a person types, or that come through a pipe.
 *
 * - At a terminal, Ctrl-C stops what is under way; at the prompt the first one says how to leave, and the second leaves.
 * - What is typed while something is under way is taken afterwards, and never as the answer to a question.
 */
export class ChatLines implements Disposable {
  readonly #init: ChatLinesInit;
  readonly #reader: Interface;
  readonly #typedAhead: string[] = [];
  #waiting: Waiting | null = null;
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
    this.#reader.on("line", (line) => this.#take(line));
    this.#reader.on("close", () => this.#end());
    this.#reader.on("SIGINT", () => this.#interrupted());
  }

  /** The next line; null when no more come. */
  async next(prompt: () => string): Promise<string | null> {
    const line = this.#typedAhead.shift();
    return line ?? this.#wait({ prompt, confirms: false });
  }

  /** A person's word on a question. */
  async confirm(question: string): Promise<Word> {
    if (this.#init.terminal === null) return "nobody";
    for (;;) {
      const answer = (await this.#wait({ prompt: () => `${question} [y/n] `, confirms: true }))?.trim().toLowerCase();
      if (answer === undefined) return "stopped";
      if (answer === "y" || answer === "yes") return "yes";
      if (answer === "n" || answer === "no") return "no";
    }
  }

  /** Takes no more lines. */
  close(): void {
    this.#reader.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #wait({ prompt, confirms }: Omit<Waiting, "resolve">): Promise<string | null> {
    if (this.#closed) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#waiting = { prompt, resolve, confirms };
      this.#showPrompt();
    });
  }

  #take(line: string): void {
    this.#warned = false;
    if (this.#waiting === null) this.#typedAhead.push(line);
    else this.#answer(line);
  }

  #answer(line: string | null): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve(line);
  }

  #end(): void {
    this.#closed = true;
    // Through a pipe, all lines may have come before the first is answered.
    if (this.#init.terminal !== null) {
      this.#init.terminal.write("\n");
      this.#init.interrupt();
    }
    this.#answer(null);
  }

  #interrupted(): void {
    if (this.#init.interrupt()) {
      if (this.#waiting?.confirms === true) this.#answer(null);
      return;
    }
    if (this.#warned) {
      this.close();
      return;
    }
    this.#warned = true;
    // What was typed so far goes: to the end of the line, and all before it.
    this.#reader.write(null, { ctrl: true, name: "e" });
    this.#reader.write(null, { ctrl: true, name: "u" });
    this.#init.terminal?.write("\nCtrl-C again leaves, and so do Ctrl-D and /quit.\n");
    this.#showPrompt();
  }

  #showPrompt(): void {
    if (this.#init.terminal === null || this.#waiting === null) return;
    this.#reader.setPrompt(this.#waiting.prompt());
    this.#reader.prompt(true);
  }
}

/** The commands that a line may become. */
function completeCommand(line: string): [completions: string[], completed: string] {
  const names = line.startsWith("/") ? Object.keys(CHAT_COMMANDS).map((name) => `/${name} `) : [];
  return [names.filter((name) => name.startsWith(line)), line];
}
