import { type RunError, type RunEvent, textOf, type ToolMessage, type Usage } from "../../index.ts";
import { addUsage, NO_USAGE } from "../../session/usage.ts";
import { printable, printableText } from "../terminal.ts";
import { asideOf } from "./aside-of.ts";
import type { ChatOutput } from "./chat-output.ts";
import { describeResult } from "./describe-result.ts";
import { describeUsage } from "./describe-usage.ts";

const ARGUMENTS_CHARACTERS_MAX = 100;

/** The destination of a printer's output. */
export interface PrinterOutput {
  /** Writes a part of the output; resolves when the stream has room for more. */
  write(text: string): void | Promise<void>;
  /** Writes an error sentence. */
  fail(text: string): void;
  /** Dims a text, if colours are shown. */
  dim(text: string): string;
}

/**
 * Prints the output of a chat for people: the answer as it streams, thinking dimmed, each call on one line with its
 * result, and the tokens and cost of a turn. Control characters in texts of a model or a tool never reach the terminal.
 */
export class ChatPrinter {
  readonly #output: PrinterOutput;
  readonly #calls = new RoundCalls();
  #text = new PrintableStream();
  /** The kind of the unfinished line; null if the last line is finished. */
  #line: "answer" | "thinking" | { readonly callId: string } | null = null;
  #answered = false;
  #spent: { usage: Usage; cost: number | null } = { usage: NO_USAGE, cost: null };

  constructor(output: PrinterOutput) {
    this.#output = output;
  }

  /** Prints one output. */
  async print(output: ChatOutput): Promise<void> {
    switch (output.type) {
      case "run-event":
        return this.#event(output.event);
      case "notice":
        return this.#whole(printableText(output.text));
      case "problem":
        await this.endLine();
        return this.#output.fail(output.text);
      case "session-opened":
        return this.#whole(this.#output.dim(`Session ${printable(output.sessionId)}, ${printable(output.model)}`));
      default:
    }
  }

  /** Ends the unfinished line. */
  async endLine(): Promise<void> {
    if (this.#line === null) return;
    this.#line = null;
    const rest = this.#text.end();
    await this.#output.write(`${rest}\n`);
  }

  async #event(event: RunEvent): Promise<void> {
    switch (event.type) {
      case "round-started":
        this.#calls.clear();
        this.#answered = false;
        return;
      case "text-delta":
        this.#answered = true;
        return this.#stream("answer", event.text);
      case "thinking-delta":
        return this.#stream("thinking", event.text);
      case "tool-call-delta":
        return this.#calls.add(event);
      case "tool-started":
        this.#calls.start(event);
        return this.#startCall(event.callId, event.name);
      case "tool-finished":
        return this.#finishCall(event.callId, event.message);
      case "usage":
        this.#spend(event.usage, event.cost);
        return;
      case "round-finished":
        // A model that does not stream sends its whole answer with this event.
        if (!this.#answered) await this.#stream("answer", textOf(event.message.content));
        return this.endLine();
      case "run-finished":
        return this.#printFinish(event.truncated);
      case "run-failed":
        return this.#printFailure(event.error);
      default: {
        const aside = asideOf(event);
        if (aside !== null) await this.#aside(aside);
      }
    }
  }

  async #stream(kind: "answer" | "thinking", piece: string): Promise<void> {
    if (piece === "") return;
    if (this.#line !== kind) await this.endLine();
    this.#line = kind;
    const text = this.#text.add(piece);
    await this.#output.write(kind === "thinking" ? this.#output.dim(text) : text);
  }

  async #startCall(callId: string, name: string): Promise<void> {
    // Parallel calls would write into each other's lines: they are printed when they are finished.
    if (this.#calls.count > 1) return;
    await this.endLine();
    this.#line = { callId };
    await this.#output.write(this.#callText(callId, name));
  }

  async #finishCall(callId: string, message: ToolMessage): Promise<void> {
    const continuesLine = typeof this.#line === "object" && this.#line?.callId === callId;
    if (!continuesLine) await this.endLine();
    this.#line = null;
    const start = continuesLine ? "" : this.#callText(callId, message.name);
    await this.#output.write(`${start}${this.#output.dim(` → ${describeResult(message)}`)}\n`);
  }

  #callText(callId: string, name: string): string {
    const given = printable(this.#calls.argumentsOf(callId), ARGUMENTS_CHARACTERS_MAX);
    return this.#output.dim(`▸ ${printable(name)}${given === "" ? "" : ` ${given}`}`);
  }

  #spend(usage: Usage, cost: number | undefined): void {
    const before = this.#spent;
    this.#spent = {
      usage: addUsage(before.usage, usage),
      cost: cost === undefined ? before.cost : (before.cost ?? 0) + cost,
    };
  }

  async #printFinish(truncated: boolean): Promise<void> {
    await this.#printUsage();
    if (truncated) await this.#aside("The answer was cut off at a limit; say what to continue with.");
  }

  async #printFailure({ code, message }: RunError): Promise<void> {
    await this.#printUsage();
    if (code === "ABORTED") return this.#whole("Stopped.");
    this.#output.fail(message);
  }

  async #printUsage(): Promise<void> {
    await this.endLine();
    const { usage, cost } = this.#spent;
    this.#spent = { usage: NO_USAGE, cost: null };
    if (usage !== NO_USAGE) await this.#aside(describeUsage(usage, cost));
  }

  async #aside(text: string): Promise<void> {
    await this.#whole(this.#output.dim(text));
  }

  async #whole(text: string): Promise<void> {
    await this.endLine();
    await this.#output.write(`${text}\n`);
  }
}

/** Collects the calls of a round from their streamed pieces. */
class RoundCalls {
  readonly #calls = new Map<number, { id: string; arguments: string }>();
  readonly #started = new Map<string, string>();

  get count(): number {
    return this.#calls.size;
  }

  add({ index, id, arguments: piece }: Extract<RunEvent, { type: "tool-call-delta" }>): void {
    const call = this.#calls.get(index) ?? { id: "", arguments: "" };
    this.#calls.set(index, { id: id ?? call.id, arguments: call.arguments + (piece ?? "") });
  }

  start({ callId, arguments: given }: Extract<RunEvent, { type: "tool-started" }>): void {
    this.#started.set(callId, JSON.stringify(given));
  }

  /** A call's arguments: as the model streamed them, else as the tool got them; empty if neither is known. */
  argumentsOf(callId: string): string {
    const streamed = [...this.#calls.values()].find(({ id }) => id === callId)?.arguments ?? "";
    return streamed === "" ? (this.#started.get(callId) ?? "") : streamed;
  }

  clear(): void {
    this.#calls.clear();
    this.#started.clear();
  }
}

/** Sanitizes a streamed text for a terminal; handles characters that are split between two pieces. */
class PrintableStream {
  #held = "";

  /** The sanitized piece; its end may be held back until the next piece arrives. */
  add(piece: string): string {
    const text = this.#held + piece;
    // Half of a surrogate pair, or a carriage return that a line feed may follow.
    this.#held = /[\ud800-\udbff\r]$/.exec(text)?.[0] ?? "";
    return printableText(text.slice(0, text.length - this.#held.length));
  }

  /** The rest that was held back. */
  end(): string {
    const rest = printableText(this.#held);
    this.#held = "";
    return rest;
  }
}
