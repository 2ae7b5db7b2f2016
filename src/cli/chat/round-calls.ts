import type { RunEvent } from "../../index.ts";

/** The calls that a model makes in a round, put together from their pieces. */
export class RoundCalls {
  readonly #calls = new Map<number, { id: string; arguments: string }>();

  get count(): number {
    return this.#calls.size;
  }

  add({ index, id, arguments: piece }: Extract<RunEvent, { type: "tool-call-delta" }>): void {
    const call = this.#calls.get(index) ?? { id: "", arguments: "" };
    this.#calls.set(index, { id: id ?? call.id, arguments: call.arguments + (piece ?? "") });
  }

  /** The arguments of a call as the model wrote them; empty where it did not stream them. */
  argumentsOf(callId: string): string {
    return [...this.#calls.values()].find(({ id }) => id === callId)?.arguments ?? "";
  }

  clear(): void {
    this.#calls.clear();
  }
}
