import type { RunEvent } from "../../../agent/run-event.ts";
import { SaidOnce, type SaidPiece } from "../../../agent/said-once.ts";
import type { ToolCall } from "../../../session/message.ts";
import type { AgUiEvent } from "./ag-ui-core.ts";
import { sent } from "./ag-ui-messages.ts";

/**
 * Writes the events of a run as events of AG-UI, under the ids that `toAgUiMessages` gives. Words and calls are chunks,
 * which a reader begins and ends by itself. Each turn of the model is a step.
 */
export class EventWriter {
  readonly #asked: string;
  #said = new SaidOnce();
  #round = 1;
  #inStep = false;
  /** The kinds of words that the present round has. */
  readonly #kinds = new Set<SaidPiece["kind"]>();
  /** The calls of the last round that have no result, in their order. */
  readonly open: Set<string> = new Set();
  /** What was written is not what the log says: the messages are to be restated. */
  astray = false;

  /** `asked` is the id of the message that asked for the run. */
  constructor(asked: string) {
    this.#asked = asked;
  }

  /** What an event adds. */
  take(event: RunEvent): AgUiEvent[] {
    if (event.type === "run-started" || event.type === "model-retry") {
      // What was said in this round is void, and a reader can be told so.
      this.astray ||= this.#inStep;
      this.#said = new SaidOnce();
      return this.endStep();
    }
    const events = this.#said.take(event).flatMap((piece) => this.#words(piece));
    if (event.type === "round-finished") events.push(...this.#calls(event.message.toolCalls ?? []));
    if (event.type === "tool-finished") {
      const { callId: toolCallId, message } = event;
      const messageId = `${this.#asked}/${this.#round - 1}/${toolCallId}`;
      this.open.delete(toolCallId);
      events.push({ type: "TOOL_CALL_RESULT", messageId, toolCallId, content: sent(message.content) });
    }
    return events;
  }

  /** Ends the step that is under way. */
  endStep(): AgUiEvent[] {
    this.#kinds.clear();
    if (!this.#inStep) return [];
    this.#inStep = false;
    return [{ type: "STEP_FINISHED", stepName: `round ${this.#round}` }];
  }

  #beginStep(): AgUiEvent[] {
    if (this.#inStep) return [];
    this.#inStep = true;
    return [{ type: "STEP_STARTED", stepName: `round ${this.#round}` }];
  }

  #words({ kind, text: delta, begins }: SaidPiece): AgUiEvent[] {
    // It says anew what the reader has, or goes on after something else: the log says which.
    this.astray ||= begins === true && this.#kinds.has(kind);
    this.#kinds.add(kind);
    const id = `${this.#asked}/${this.#round}`;
    const chunk: AgUiEvent =
      kind === "text"
        ? { type: "TEXT_MESSAGE_CHUNK", messageId: id, role: "assistant", delta }
        : { type: "REASONING_MESSAGE_CHUNK", messageId: `${id}/thought`, delta };
    return [...this.#beginStep(), chunk];
  }

  /** The calls of a round, which ends with them. */
  #calls(calls: readonly ToolCall[]): AgUiEvent[] {
    this.open.clear();
    const parentMessageId = `${this.#asked}/${this.#round}`;
    const events = calls.flatMap(({ id: toolCallId, name: toolCallName, arguments: delta }): AgUiEvent[] => {
      this.open.add(toolCallId);
      return [...this.#beginStep(), { type: "TOOL_CALL_CHUNK", toolCallId, toolCallName, parentMessageId, delta }];
    });
    events.push(...this.endStep());
    this.#round += 1;
    return events;
  }
}
