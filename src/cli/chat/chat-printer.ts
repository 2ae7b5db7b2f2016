import { type RunError, type RunEvent, textOf, type ToolMessage, type Usage } from "../../index.ts";
import { addUsage, NO_USAGE } from "../../session/usage.ts";
import { printable, printableText } from "../terminal.ts";
import { asideOf } from "./aside-of.ts";
import type { ChatOutput } from "./chat-output.ts";
import { describeResult } from "./describe-result.ts";
import { describeSpending } from "./describe-spending.ts";
import { PrintableStream } from "./printable-stream.ts";
import { RoundCalls } from "./round-calls.ts";

const ARGUMENTS_CHARACTERS_MAX = 100;

/** Where a chat's words go. */
export interface PrinterOutput {
  /** Takes a part of the output; resolves when there is room for more. */
  write(text: string): void | Promise<void>;
  /** Takes a sentence that says why something was not done. */
  fail(text: string): void;
  /** Sets a text apart, where colours are shown. */
  dim(text: string): string;
}

/**
 * Prints what a chat says for people to read: the answer as it comes, thinking dim, each call on one line with what came
 * of it, and what a turn has spent. Nothing that a model or a tool said can steer the terminal.
 */
export class ChatPrinter {
  readonly #output: PrinterOutput;
  readonly #calls = new RoundCalls();
  #text = new PrintableStream();
  /** What the line under way is part of, if it is not finished. */
  #line: "answer" | "thinking" | { readonly callId: string } | null = null;
  #answered = false;
  #spent: { usage: Usage; cost: number | null } = { usage: NO_USAGE, cost: null };

  constructor(output: PrinterOutput) {
    this.#output = output;
  }

  /** Shows one output. */
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

  /** Finishes the line under way. */
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
        // A model that does not stream says everything at once.
        if (!this.#answered) await this.#stream("answer", textOf(event.message.content));
        return this.endLine();
      case "run-finished":
        return this.#finish(event.truncated);
      case "run-failed":
        return this.#fail(event.error);
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
    // Calls side by side would write into each other's lines: those are told when they are over.
    if (this.#calls.count > 1) return;
    await this.endLine();
    this.#line = { callId };
    await this.#output.write(this.#callText(callId, name));
  }

  async #finishCall(callId: string, message: ToolMessage): Promise<void> {
    const goesOn = typeof this.#line === "object" && this.#line?.callId === callId;
    if (!goesOn) await this.endLine();
    this.#line = null;
    const start = goesOn ? "" : this.#callText(callId, message.name);
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

  async #finish(truncated: boolean): Promise<void> {
    await this.#tellSpending();
    if (truncated) await this.#aside("The turn was cut short; say what to go on with.");
  }

  async #fail({ code, message }: RunError): Promise<void> {
    await this.#tellSpending();
    if (code === "ABORTED") return this.#whole("Stopped.");
    this.#output.fail(message);
  }

  async #tellSpending(): Promise<void> {
    await this.endLine();
    const { usage, cost } = this.#spent;
    this.#spent = { usage: NO_USAGE, cost: null };
    if (usage !== NO_USAGE) await this.#aside(describeSpending(usage, cost));
  }

  async #aside(text: string): Promise<void> {
    await this.#whole(this.#output.dim(text));
  }

  async #whole(text: string): Promise<void> {
    await this.endLine();
    await this.#output.write(`${text}\n`);
  }
}
