import type { ModelDelta } from "../../agent/model/model.ts";
import { cutShort, WireError } from "../wire/failure.ts";
import { type Fields, fieldsOf, listOf, numberOf, stringOf } from "../wire/json-reader.ts";
import type { WireAnswer, WireStream } from "../wire/wire-model.ts";
import { inputOf } from "./messages-body.ts";

type ReadMessage = (message: Fields, argumentTexts: ReadonlyMap<unknown, string>) => WireAnswer;

interface OpenBlock {
  readonly block: Record<string, unknown>;
  /** The JSON of a call's input received so far. */
  json: string;
  /** The position among the tool calls. */
  readonly callIndex: number;
}

/** Assembles a message of the Messages API from its events. */
export class MessagesStream implements WireStream {
  readonly #readMessage: ReadMessage;
  readonly #blocks = new Map<number, OpenBlock>();
  #message: Record<string, unknown> = {};
  #usage: Record<string, unknown> = {};
  #calls = 0;
  #stopped = false;

  constructor(readMessage: ReadMessage) {
    this.#readMessage = readMessage;
  }

  read(value: unknown): ModelDelta[] {
    const event = fieldsOf(value);
    const index = numberOf(event["index"]) ?? 0;
    switch (event["type"]) {
      case "message_start":
        this.#message = { ...fieldsOf(event["message"]) };
        this.#count(this.#message["usage"]);
        return [];
      case "content_block_start":
        return this.#begin(index, fieldsOf(event["content_block"]));
      case "content_block_delta":
        return this.#extend(index, fieldsOf(event["delta"]));
      case "message_delta":
        Object.assign(this.#message, fieldsOf(event["delta"]));
        this.#count(event["usage"]);
        return [];
      case "message_stop":
        this.#stopped = true;
        return [];
      case "error":
        throw new WireError(fieldsOf(event["error"]));
      default:
        return [];
    }
  }

  finish(): WireAnswer {
    if (!this.#stopped) throw cutShort("anthropic");
    const argumentTexts = new Map<unknown, string>();
    const content = [...this.#blocks.values()].map(({ block, json }) => {
      if (json === "") return block;
      const whole = { ...block, input: inputOf(json) };
      argumentTexts.set(whole, json);
      return whole;
    });
    return this.#readMessage({ ...this.#message, content, usage: this.#usage }, argumentTexts);
  }

  /** Adds token counts: input counts come at the start, output counts at the end. A missing or null count changes nothing. */
  #count(usage: unknown): void {
    for (const [name, value] of Object.entries(fieldsOf(usage)))
      if (value !== null && value !== undefined) this.#usage[name] = value;
  }

  #begin(index: number, started: Fields): ModelDelta[] {
    const isCall = started["type"] === "tool_use";
    const open: OpenBlock = { block: { ...started }, json: "", callIndex: isCall ? this.#calls++ : -1 };
    this.#blocks.set(index, open);
    if (isCall)
      return [
        {
          type: "tool-call-delta",
          index: open.callIndex,
          id: stringOf(started["id"]),
          name: stringOf(started["name"]),
        },
      ];
    const text = stringOf(started["text"]);
    return text === "" ? [] : [{ type: "text-delta", text }];
  }

  #extend(index: number, delta: Fields): ModelDelta[] {
    const open = this.#blocks.get(index);
    if (open === undefined) return [];
    const { block, callIndex } = open;
    switch (delta["type"]) {
      case "text_delta":
        return [{ type: "text-delta", text: append(block, "text", delta) }];
      case "thinking_delta":
        return [{ type: "thinking-delta", text: append(block, "thinking", delta) }];
      case "signature_delta":
        append(block, "signature", delta);
        return [];
      case "citations_delta":
        block["citations"] = [...listOf(block["citations"]), delta["citation"]];
        return [];
      case "input_json_delta": {
        const json = stringOf(delta["partial_json"]);
        open.json += json;
        return json === "" || callIndex < 0 ? [] : [{ type: "tool-call-delta", index: callIndex, arguments: json }];
      }
      default:
        return [];
    }
  }
}

function append(block: Record<string, unknown>, field: string, delta: Fields): string {
  const text = stringOf(delta[field]);
  block[field] = stringOf(block[field]) + text;
  return text;
}
