import type { PromptCacheUsage } from "skein/testing";

/** An API whose answers are emulated: Messages of Anthropic, Chat Completions or Responses of OpenAI. */
export type Api = "messages" | "chat" | "responses";

/** What the model answers: a call, or a text. */
export interface Answer {
  readonly id: string;
  readonly model: string;
  readonly call: { readonly name: string; readonly arguments: string } | null;
  readonly usage: PromptCacheUsage;
}

const TEXT = "Done.";
const OUTPUT_TOKENS = 5;

/** An answer as the body of a response. */
export function bodyOf(api: Api, answer: Answer): object {
  if (api === "messages") return message(answer);
  return api === "chat" ? completion(answer) : response(answer);
}

/** An answer as server-sent events. */
export function eventsOf(api: Api, answer: Answer): string {
  if (api === "messages") return messageEvents(answer);
  return api === "chat" ? completionEvents(answer) : responseEvents(answer);
}

function message({ id, model, call, usage: { read, written, writtenForAnHour, fresh } }: Answer) {
  const text = { type: "text", text: TEXT };
  const use = call && { type: "tool_use", id: `toolu_${id}`, name: call.name, input: JSON.parse(call.arguments) };
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model,
    content: [use ?? text],
    stop_reason: call === null ? "end_turn" : "tool_use",
    stop_sequence: null,
    usage: {
      input_tokens: fresh,
      output_tokens: OUTPUT_TOKENS,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: written,
      cache_creation: {
        ephemeral_5m_input_tokens: written - writtenForAnHour,
        ephemeral_1h_input_tokens: writtenForAnHour,
      },
    },
  };
}

function messageEvents(answer: Answer): string {
  const { content, stop_reason, stop_sequence, usage, ...rest } = message(answer);
  const { call } = answer;
  const start = call === null ? { type: "text", text: "" } : { ...content[0], input: {} };
  const delta =
    call === null ? { type: "text_delta", text: TEXT } : { type: "input_json_delta", partial_json: call.arguments };
  return named([
    { type: "message_start", message: { ...rest, content: [], stop_reason: null, stop_sequence, usage } },
    { type: "content_block_start", index: 0, content_block: start },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason, stop_sequence }, usage: { output_tokens: OUTPUT_TOKENS } },
    { type: "message_stop" },
  ]);
}

function completion({ id, model, call, usage: { read, written, fresh } }: Answer) {
  const input = read + written + fresh;
  const toolCalls = call && [{ id: `call_${id}`, type: "function", function: call }];
  return {
    id: `chatcmpl_${id}`,
    object: "chat.completion",
    created: 0,
    model,
    choices: [
      {
        index: 0,
        finish_reason: call === null ? "stop" : "tool_calls",
        message: {
          role: "assistant",
          content: call === null ? TEXT : null,
          ...(toolCalls && { tool_calls: toolCalls }),
        },
      },
    ],
    usage: {
      prompt_tokens: input,
      completion_tokens: OUTPUT_TOKENS,
      total_tokens: input + OUTPUT_TOKENS,
      prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    },
  };
}

function completionEvents(answer: Answer): string {
  const { choices, usage, ...rest } = completion(answer);
  const chunk = { ...rest, object: "chat.completion.chunk" };
  const [choice] = choices;
  const { tool_calls: calls, ...said } = choice?.message ?? {};
  const delta = { ...said, ...(calls && { tool_calls: calls.map((call, index) => ({ index, ...call })) }) };
  const events = [
    { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: choice?.finish_reason }] },
    { ...chunk, choices: [], usage },
  ];
  return `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`;
}

function response({ id, model, call, usage: { read, written, fresh } }: Answer) {
  const input = read + written + fresh;
  const said = {
    type: "message",
    id: `item_${id}`,
    status: "completed",
    role: "assistant",
    content: [{ type: "output_text", text: TEXT, annotations: [] }],
  };
  const called = call && {
    type: "function_call",
    id: `item_${id}`,
    call_id: `call_${id}`,
    status: "completed",
    ...call,
  };
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: 0,
    status: "completed",
    model,
    output: [called ?? said],
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: read, cache_write_tokens: written },
      output_tokens: OUTPUT_TOKENS,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + OUTPUT_TOKENS,
    },
  };
}

function responseEvents(answer: Answer): string {
  const whole = response(answer);
  const [item] = whole.output;
  const at = { item_id: item?.id, output_index: 0 };
  const text = { ...at, type: "response.output_text.delta", content_index: 0, delta: TEXT };
  return named([
    { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
    { type: "response.output_item.added", output_index: 0, item },
    ...(answer.call === null ? [text] : []),
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: whole },
  ]);
}

function named(events: readonly ({ readonly type: string } & Record<string, unknown>)[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
