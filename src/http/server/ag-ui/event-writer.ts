import type { RunEvent } from "../../../agent/run-event.ts";
import type { AssistantMessage } from "../../../session/message.ts";
import type { AgUiEvent } from "./ag-ui-core.ts";
import { answerIdOf, reasoningIdOf, resultIdOf, sent, wholeText } from "./ag-ui-messages.ts";

type Spoken = "text" | "thinking";

/** Writes the events of a run as events of AG-UI. Each turn of the model is a step. */
export class EventWriter {
  readonly #asked: string;
  #events: AgUiEvent[] = [];
  #round = 1;
  #open: Spoken | null = null;
  #inStep = false;
  /** What was written of the present round. */
  #written: Record<Spoken, string> = { text: "", thinking: "" };
  /** Some of it was missed, so that it is written once it is whole. */
  #missed = false;
  /** The calls that were written. */
  readonly calls: Set<string> = new Set();
  /** What was written is not what the log says: the messages are to be restated. Nothing is open then. */
  astray = false;

  /** `asked` is the id of the message that asked for the run. */
  constructor(asked: string) {
    this.#asked = asked;
  }

  /** What an event adds. */
  take(event: RunEvent): AgUiEvent[] {
    this.#events = [];
    switch (event.type) {
      case "text-delta":
        if (!this.#missed) this.#write("text", event.text);
        break;
      case "thinking-delta":
        if (!this.#missed) this.#write("thinking", event.text);
        break;
      case "run-started":
      case "model-retry":
        // What was said in this round is void.
        if (this.#written.text + this.#written.thinking !== "") this.astray = true;
        this.#endRound();
        break;
      case "events-dropped":
        this.#missed = true;
        break;
      case "round-finished":
        this.#whole(event.message);
        break;
      case "tool-finished": {
        const { callId: toolCallId, message } = event;
        const messageId = resultIdOf(this.#asked, this.#round - 1, toolCallId);
        this.#events.push({ type: "TOOL_CALL_RESULT", messageId, toolCallId, content: sent(message.content) });
        break;
      }
      default:
        break;
    }
    return this.#events;
  }

  /** Closes what is open. */
  end(): AgUiEvent[] {
    this.#events = [];
    this.#endRound();
    return this.#events;
  }

  #whole({ content, toolCalls = [] }: AssistantMessage): void {
    for (const kind of ["thinking", "text"] as const) {
      const whole = wholeText(content, kind);
      if (whole.startsWith(this.#written[kind])) this.#write(kind, whole.slice(this.#written[kind].length));
      else this.astray = true;
    }
    this.#close();
    for (const { id: toolCallId, name, arguments: delta } of toolCalls) {
      this.calls.add(toolCallId);
      if (this.astray) continue;
      this.#step();
      const parentMessageId = answerIdOf(this.#asked, this.#round);
      this.#events.push({ type: "TOOL_CALL_START", toolCallId, toolCallName: name, parentMessageId });
      this.#events.push({ type: "TOOL_CALL_ARGS", toolCallId, delta }, { type: "TOOL_CALL_END", toolCallId });
    }
    this.#endRound();
    this.#round += 1;
  }

  #write(kind: Spoken, delta: string): void {
    if (delta === "") return;
    this.#step();
    if (this.#open !== kind) this.#begin(kind);
    const messageId = this.#idOf(kind);
    this.#events.push({
      type: kind === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT",
      messageId,
      delta,
    });
    this.#written[kind] += delta;
  }

  #begin(kind: Spoken): void {
    this.#close();
    this.#open = kind;
    const messageId = this.#idOf(kind);
    if (kind === "text") this.#events.push({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
    else {
      this.#events.push({ type: "REASONING_START", messageId });
      this.#events.push({ type: "REASONING_MESSAGE_START", messageId, role: "reasoning" });
    }
  }

  #close(): void {
    if (this.#open === null) return;
    const messageId = this.#idOf(this.#open);
    if (this.#open === "text") this.#events.push({ type: "TEXT_MESSAGE_END", messageId });
    else this.#events.push({ type: "REASONING_MESSAGE_END", messageId }, { type: "REASONING_END", messageId });
    this.#open = null;
  }

  #idOf(kind: Spoken): string {
    const id = answerIdOf(this.#asked, this.#round);
    return kind === "text" ? id : reasoningIdOf(id);
  }

  #step(): void {
    if (!this.#inStep) this.#events.push({ type: "STEP_STARTED", stepName: this.#stepName() });
    this.#inStep = true;
  }

  #stepName(): string {
    return `round ${this.#round}`;
  }

  #endRound(): void {
    this.#close();
    if (this.#inStep) this.#events.push({ type: "STEP_FINISHED", stepName: this.#stepName() });
    this.#inStep = false;
    this.#written = { text: "", thinking: "" };
    this.#missed = false;
  }
}
