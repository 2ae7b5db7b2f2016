import type { ModelDelta } from "../../agent/model/model.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { ContentPart, StopReason, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import { cutShort } from "../wire/failure.ts";
import { type Fields, fieldsOf, listOf, numberOf, stringOf } from "../wire/json-reader.ts";
import type { WireAnswer } from "../wire/wire-model.ts";

interface OpenCall {
  id: string;
  name: string;
  arguments: string;
}

/** Assembles an answer of the Chat Completions API from one whole message or from chunks. */
export class ChatAnswer {
  readonly #id: string;
  readonly #calls: OpenCall[] = [];
  /** Positions of calls by the provider's index; a new id at the same index is a new call. */
  readonly #byIndex = new Map<number, number>();
  #model = "";
  #text = "";
  #refusal = "";
  #thinking = "";
  /** The name of the field with the thinking, which differs between endpoints. */
  #thinkingField = "";
  #usage: Usage | undefined;
  #finishReason = "";

  constructor(id: string) {
    this.#id = id;
  }

  named(model: string): void {
    if (model !== "") this.#model = model;
  }

  spent(usage: Usage | undefined): void {
    this.#usage = usage ?? this.#usage;
  }

  stopped(reason: unknown): void {
    this.#finishReason = stringOf(reason) || this.#finishReason;
  }

  /** Adds a message or a chunk, and returns its deltas. */
  add(piece: Fields): ModelDelta[] {
    const deltas: ModelDelta[] = [];
    const field = stringOf(piece["reasoning_content"]) === "" ? "reasoning" : "reasoning_content";
    const thinking = stringOf(piece[field]);
    if (thinking !== "") {
      this.#thinkingField = field;
      this.#thinking += thinking;
      deltas.push({ type: "thinking-delta", text: thinking });
    }
    const text = textIn(piece["content"]);
    const refusal = stringOf(piece["refusal"]);
    this.#text += text;
    this.#refusal += refusal;
    for (const said of [text, refusal]) if (said !== "") deltas.push({ type: "text-delta", text: said });
    for (const call of listOf(piece["tool_calls"])) deltas.push(this.#addCall(fieldsOf(call)));
    return deltas;
  }

  /** The whole answer. @throws {ModelError} if there is no finish reason: then the answer is incomplete. */
  finish(): WireAnswer {
    if (this.#finishReason === "") throw cutShort("openai");
    const toolCalls = this.#calls.map((call): ToolCall => ({ ...call, arguments: call.arguments || "{}" }));
    const parts: ContentPart[] = [];
    if (this.#thinking !== "") parts.push({ type: "thinking", text: this.#thinking });
    parts.push({ type: "text", text: this.#text + this.#refusal });
    return {
      parts,
      toolCalls,
      stopReason: this.#refusal === "" ? stopReasonOf(this.#finishReason, toolCalls) : "content_filter",
      model: this.#model,
      usage: this.#usage,
      // Some endpoints require the thinking of a round back with its calls; others refuse the unknown field.
      ...(this.#thinking === ""
        ? {}
        : { providerData: { api: "chat", model: this.#id, message: { [this.#thinkingField]: this.#thinking } } }),
    };
  }

  #addCall(piece: Fields): ModelDelta {
    const target = fieldsOf(piece["function"]);
    const id = stringOf(piece["id"]);
    const index = this.#indexOf(numberOf(piece["index"]), id);
    const begun = this.#calls[index];
    const call = begun ?? { id: id || `call_${uuidv7()}`, name: "", arguments: "" };
    if (begun === undefined) this.#calls.push(call);
    const name = call.name === "" ? stringOf(target["name"]) : "";
    // A few endpoints send the arguments as an object instead of a text.
    const given = target["arguments"];
    const args = typeof given === "object" && given !== null ? JSON.stringify(given) : stringOf(given);
    call.name += name;
    call.arguments += args;
    return {
      type: "tool-call-delta",
      index,
      ...(begun === undefined ? { id: call.id } : {}),
      ...(name === "" ? {} : { name }),
      ...(args === "" ? {} : { arguments: args }),
    };
  }

  /** The position of a call. Some endpoints omit the index, or always send 0: then a new id begins a new call. */
  #indexOf(given: number | undefined, id: string): number {
    const next = this.#calls.length;
    const known = given === undefined ? next - 1 : this.#byIndex.get(given);
    const open = known === undefined ? undefined : this.#calls[known];
    if (known !== undefined && open !== undefined && (id === "" || id === open.id)) return known;
    if (given !== undefined) this.#byIndex.set(given, next);
    return next;
  }
}

/** The text of a content, which some endpoints send as parts. */
function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map((part) => stringOf(fieldsOf(part)["text"]))
    .join("");
}

function stopReasonOf(reason: string, toolCalls: readonly ToolCall[]): StopReason {
  if (reason === "length" || reason === "content_filter") return reason;
  // An answer with a forced tool call also has the finish reason "stop".
  return toolCalls.length > 0 ? "tool_calls" : "stop";
}
