import type { RunEvent } from "../../index.ts";

/** The calls that a model makes in a round, put together from their pieces. */
export class RoundCalls {
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

  /** The arguments of a call: as the model streamed them, else as the tool got them; empty where it did not get so far. */
  argumentsOf(callId: string): string {
    const streamed = [...this.#calls.values()].find(({ id }) => id === callId)?.arguments ?? "";
    return streamed === "" ? (this.#started.get(callId) ?? "") : streamed;
  }

  clear(): void {
    this.#calls.clear();
    this.#started.clear();
  }
}
