import type { ContentPart, StopReason, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import { ModelError } from "./model-error.ts";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "./model.ts";

/**
 * Asks a model once, by streaming if it supports it, and calls a listener with each delta.
 *
 * @throws {ModelError} `connection` for a stream that ends without a stop reason; errors of the model are passed on.
 */
export async function collectReply(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  onDelta: (delta: ModelDelta) => void,
  onPart: (partial: PartialReply) => void = () => {},
): Promise<ModelReply> {
  if (model.stream === undefined) return model.complete(request, { signal });
  const partial = new PartialReply(model);
  onPart(partial);
  for await (const delta of model.stream(request, { signal })) {
    // A model that ignores the signal would otherwise keep streaming.
    signal.throwIfAborted();
    if (delta.type === "finish") return delta.reply ?? partial.finish(delta.stopReason, delta.usage);
    partial.add(delta);
    onDelta(delta);
  }
  signal.throwIfAborted();
  throw new ModelError("connection", `The answer of ${model.provider}/${model.id} ended before it was complete.`, {
    provider: model.provider,
  });
}

/** A partial answer. */
export class PartialReply {
  readonly #model: Model;
  #text = "";
  #thinking = "";
  readonly #calls = new Map<number, { id: string; name: string; arguments: string }>();

  constructor(model: Model) {
    this.#model = model;
  }

  /** The text so far. */
  get text(): string {
    return this.#text;
  }

  add(delta: Exclude<ModelDelta, { type: "finish" }>): void {
    if (delta.type === "tool-call-delta") this.#addCall(delta);
    else if (delta.type === "text-delta") this.#text += delta.text;
    else if (delta.type === "thinking-delta") this.#thinking += delta.text;
  }

  finish(stopReason: StopReason, usage: Usage | undefined): ModelReply {
    const thinking: ContentPart[] = this.#thinking === "" ? [] : [{ type: "thinking", text: this.#thinking }];
    const text: ContentPart[] = this.#text === "" ? [] : [{ type: "text", text: this.#text }];
    const toolCalls: ToolCall[] = [...this.#calls.entries()]
      .sort(([a], [b]) => a - b)
      .map(([index, call]) => ({ ...call, id: call.id === "" ? `call_${index + 1}` : call.id }));
    return {
      role: "assistant",
      content: thinking.length > 0 ? [...thinking, ...text] : this.#text === "" ? null : this.#text,
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
      provider: this.#model.provider,
      model: this.#model.id,
      stopReason,
      ...(usage === undefined ? {} : { usage }),
    };
  }

  #addCall(delta: Extract<ModelDelta, { type: "tool-call-delta" }>): void {
    const call = this.#calls.get(delta.index) ?? { id: "", name: "", arguments: "" };
    call.id = delta.id ?? call.id;
    call.name = delta.name ?? call.name;
    call.arguments += delta.arguments ?? "";
    this.#calls.set(delta.index, call);
  }
}
