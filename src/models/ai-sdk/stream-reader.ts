import type { ModelDelta } from "../../agent/model/model.ts";
import { cutShort } from "../wire/failure.ts";
import type { Block, Generated, StreamPart } from "./contract.ts";
import { endsWithoutReason } from "./reply-of.ts";

type Metadata = NonNullable<Block["providerMetadata"]>;
type StreamedPart = { type: "text" | "reasoning"; text: string; providerMetadata?: Metadata };
type Called = Extract<Block, { type: "tool-call" }> & { index: number };

/** Assembles the parts of a stream into blocks, in the order in which the blocks began. */
export class StreamReader {
  readonly #provider: string;
  readonly #blocks: Block[] = [];
  readonly #said = new Map<string, StreamedPart>();
  readonly #called = new Map<string, Called>();
  #calls = 0;
  #modelId: string | undefined;
  #finish: Extract<StreamPart, { type: "finish" }> | undefined;

  constructor(provider: string) {
    this.#provider = provider;
  }

  /** Returns the deltas of a stream part. @throws the error that the provider sent. */
  read(part: StreamPart): readonly ModelDelta[] {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        return this.#say("text", part.id, "delta" in part ? part.delta : "", part.providerMetadata);
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.#say("reasoning", part.id, "delta" in part ? part.delta : "", part.providerMetadata);
      case "tool-input-start":
        return part.providerExecuted === true ? [] : this.#call(part.id, part.toolName);
      case "tool-input-delta":
        return this.#addInput(part.id, part.delta);
      case "tool-call":
        return this.#endCall(part as Extract<Block, { type: "tool-call" }>);
      case "tool-result":
      case "file":
      case "source":
        this.#blocks.push(part as Block);
        return [];
      case "response-metadata":
        this.#modelId = part.modelId ?? this.#modelId;
        return [];
      case "finish":
        this.#finish = part;
        return [];
      case "error":
        throw part.error;
      default:
        return [];
    }
  }

  /** The whole answer. @throws {ModelError} if the stream ended early. */
  finish(): Generated {
    if (this.#finish === undefined || endsWithoutReason(this.#finish.finishReason)) throw cutShort(this.#provider);
    const { finishReason, usage, providerMetadata } = this.#finish;
    const content = this.#blocks.filter((block) => block.type !== "text" || block.text !== "");
    return {
      content,
      finishReason,
      usage,
      ...(providerMetadata === undefined ? {} : { providerMetadata }),
      ...(this.#modelId === undefined ? {} : { response: { modelId: this.#modelId } }),
    };
  }

  #say(type: StreamedPart["type"], id: string, text: string, metadata: Metadata | undefined): readonly ModelDelta[] {
    const key = `${type} ${id}`;
    let said = this.#said.get(key);
    if (said === undefined) {
      said = { type, text: "" };
      this.#said.set(key, said);
      this.#blocks.push(said);
    }
    said.text += text;
    // A signature arrives with the last part of the text that it signs.
    if (metadata !== undefined) said.providerMetadata = merged(said.providerMetadata, metadata);
    return text === "" ? [] : [{ type: type === "text" ? "text-delta" : "thinking-delta", text }];
  }

  #call(id: string, toolName: string): readonly ModelDelta[] {
    const called: Called = { type: "tool-call", toolCallId: id, toolName, input: "", index: this.#calls++ };
    this.#called.set(id, called);
    this.#blocks.push(called);
    return [{ type: "tool-call-delta", index: called.index, id, name: toolName }];
  }

  #addInput(id: string, delta: string): readonly ModelDelta[] {
    const called = this.#called.get(id);
    if (called === undefined || delta === "") return [];
    called.input += delta;
    return [{ type: "tool-call-delta", index: called.index, arguments: delta }];
  }

  #endCall(part: Extract<Block, { type: "tool-call" }>): readonly ModelDelta[] {
    if (part.providerExecuted === true) {
      this.#blocks.push(part);
      return [];
    }
    const started = this.#called.has(part.toolCallId) ? [] : this.#call(part.toolCallId, part.toolName);
    const called = this.#called.get(part.toolCallId) as Called;
    const missing = part.input.startsWith(called.input) ? part.input.slice(called.input.length) : "";
    called.input = part.input;
    if (part.providerMetadata !== undefined) called.providerMetadata = part.providerMetadata;
    return missing === ""
      ? started
      : [...started, { type: "tool-call-delta", index: called.index, arguments: missing }];
  }
}

function merged(before: Metadata | undefined, added: Metadata): Metadata {
  const result: Metadata = { ...before };
  for (const [provider, fields] of Object.entries(added)) result[provider] = { ...result[provider], ...fields };
  return result;
}
