import type { RunEvent } from "../../../agent/run-event.ts";
import type { AssistantMessage } from "../../../session/message.ts";
import type { AgUiEvent } from "./ag-ui-core.ts";
import { sent, wholeText } from "./ag-ui-messages.ts";

type Spoken = "text" | "thinking";

/**
 * Writes the events of a run as events of AG-UI, under the ids that `toAgUiMessages` gives. Words and calls are chunks,
 * which a reader begins and ends by itself. Each turn of the model is a step.
 */
export class EventWriter {
  readonly #asked: string;
  #round = 1;
  #inStep = false;
  /** What was written of the present round. */
  #written: Record<Spoken, string> = { text: "", thinking: "" };
  /** Some of it was missed, so that it is written once it is whole. */
  #missed = false;
  /** The calls of the run. */
  readonly calls: Set<string> = new Set();
  /** What was written is not what the log says: the messages are to be restated. */
  astray = false;

  /** `asked` is the id of the message that asked for the run. */
  constructor(asked: string) {
    this.#asked = asked;
  }

  /** What an event adds. */
  take(event: RunEvent): AgUiEvent[] {
    switch (event.type) {
      case "text-delta":
        return this.#missed ? [] : this.#words("text", event.text);
      case "thinking-delta":
        return this.#missed ? [] : this.#words("thinking", event.text);
      case "run-started":
      case "model-retry":
        // What was said in this round is void.
        this.astray ||= this.#inStep;
        return this.endStep();
      case "events-dropped":
        this.#missed = true;
        return [];
      case "round-finished":
        return this.#whole(event.message);
      case "tool-finished": {
        const { callId: toolCallId, message } = event;
        const messageId = `${this.#asked}/${this.#round - 1}/${toolCallId}`;
        return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, content: sent(message.content) }];
      }
      default:
        return [];
    }
  }

  /** Ends the step that is under way. */
  endStep(): AgUiEvent[] {
    const events: AgUiEvent[] = this.#inStep ? [{ type: "STEP_FINISHED", stepName: this.#stepName }] : [];
    this.#inStep = false;
    this.#missed = false;
    this.#written = { text: "", thinking: "" };
    return events;
  }

  #beginStep(): AgUiEvent[] {
    if (this.#inStep) return [];
    this.#inStep = true;
    return [{ type: "STEP_STARTED", stepName: this.#stepName }];
  }

  get #stepName(): string {
    return `round ${this.#round}`;
  }

  #words(kind: Spoken, delta: string): AgUiEvent[] {
    if (delta === "") return [];
    this.#written[kind] += delta;
    const id = `${this.#asked}/${this.#round}`;
    const chunk: AgUiEvent =
      kind === "text"
        ? { type: "TEXT_MESSAGE_CHUNK", messageId: id, role: "assistant", delta }
        : { type: "REASONING_MESSAGE_CHUNK", messageId: `${id}/thought`, delta };
    return [...this.#beginStep(), chunk];
  }

  #whole({ content, toolCalls = [] }: AssistantMessage): AgUiEvent[] {
    const events = (["thinking", "text"] as const).flatMap((kind) => {
      const [written, whole] = [this.#written[kind], wholeText(content, kind)];
      this.astray ||= !whole.startsWith(written);
      return this.astray ? [] : this.#words(kind, whole.slice(written.length));
    });
    const parentMessageId = `${this.#asked}/${this.#round}`;
    for (const { id: toolCallId, name: toolCallName, arguments: delta } of toolCalls) {
      this.calls.add(toolCallId);
      events.push(...this.#beginStep(), { type: "TOOL_CALL_CHUNK", toolCallId, toolCallName, parentMessageId, delta });
    }
    events.push(...this.endStep());
    this.#round += 1;
    return events;
  }
}
