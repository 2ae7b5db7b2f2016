import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { SessionError } from "../../session/errors.ts";
import { type Message, textOf, type ToolCall } from "../../session/message.ts";
import type { Transcript } from "../../session/value/transcript.ts";
import type { LoopOptions } from "../loop-options.ts";
import type { ModelRequest } from "../model/model.ts";
import type { ToolSchema } from "../../session/log/setup.ts";
import { closeSchema, wrapSchema } from "../schema/object-schema.ts";
import { checkValue, readSchema, type ValueSchema } from "../schema/value-schema.ts";
import { parseArguments } from "../tools/parse-arguments.ts";

/** The default number of times that a model is told that its value is invalid. */
const OUTPUT_RETRIES_DEFAULT = 2;

/** The tool through which models without native structured output give the value; it is not one of the loop's tools. */
export const ANSWER_TOOL = "give_answer";

const DESCRIPTION =
  "Takes the final answer. Call it once, with the whole answer, when there is nothing left to find out.";

/** The metadata key of a message that asks for the value again. */
const AGAIN_KEY = "skein.output";

/** A valid structured output: as parsed by its schema, and as the model wrote it. */
export interface GivenOutput {
  readonly value: unknown;
  readonly json: JsonValue;
}

/** The result of reading an answer: the value, or a sentence about what is wrong with it. */
export type OutputReading = { readonly given: GivenOutput } | { readonly problem: string };

/** The structured output of a run: how it is requested, and how an answer is read. */
export class RunOutput {
  readonly #schema: ValueSchema;
  /** The schema that models see; always the schema of an object, as providers require. */
  readonly #shownSchema: JsonObject;
  readonly #isWrapped: boolean;
  readonly #byTool: boolean;
  readonly #retries: number;

  /**
   * With `described`, the model is told of that JSON Schema instead of the schema's own.
   *
   * @throws {SessionError} `INVALID_OPTION` for a schema that does not provide JSON Schema.
   */
  constructor(
    schema: ValueSchema,
    { outputRetries = OUTPUT_RETRIES_DEFAULT, model, executor }: LoopOptions,
    described: JsonObject = outputSchema(schema),
  ) {
    this.#schema = schema;
    this.#isWrapped = described["type"] !== "object";
    this.#shownSchema = closeSchema(this.#isWrapped ? wrapSchema(described) : described);
    this.#byTool = executor !== undefined || model?.takesOutput?.(this.#shownSchema) !== true;
    this.#retries = outputRetries;
  }

  /** Adds the structured output to the tools and the tool choice of a request. */
  request(
    tools: readonly ToolSchema[],
    toolChoice: ModelRequest["toolChoice"],
    { again }: { readonly again: boolean },
  ): Pick<ModelRequest, "tools" | "toolChoice" | "output"> {
    const chosen = toolChoice === undefined ? {} : { toolChoice };
    if (!this.#byTool) return { ...(tools.length > 0 && { tools }), ...chosen, output: this.#shownSchema };
    const answer = { name: ANSWER_TOOL, description: DESCRIPTION, parameters: this.#shownSchema };
    // Without a forced choice, a model that has no other tool to call may write its answer as text.
    const forced = again || tools.length === 0 || toolChoice === "none";
    return { tools: [...tools, answer], ...(forced ? { toolChoice: { name: ANSWER_TOOL } } : chosen) };
  }

  /** Reads an answer, given as text or as the arguments of a call. */
  async read(text: string): Promise<OutputReading> {
    if (text.trim() === "") return { problem: "the answer is empty." };
    const parsed = parseArguments(unfenced(text), "the answer");
    if (!parsed.ok) return parsed;
    const answer = parsed.value as JsonObject;
    const [json, name] = this.#isWrapped ? [answer["value"], "value"] : [answer, "answer"];
    if (json === undefined) return { problem: "value is missing." };
    const checked = await checkValue(this.#schema, json, name);
    return checked.ok ? { given: { value: checked.value, json } } : checked;
  }

  /** Whether the model was told of an invalid value as often as allowed. */
  isExhausted(transcript: Transcript): boolean {
    return invalidValues(transcript) >= this.#retries;
  }

  /** The message that tells the model why its text is not a valid value. */
  again(problem: string): Message {
    const how = this.#byTool
      ? `Call the tool ${ANSWER_TOOL} with the answer.`
      : "Answer again, with the whole value as JSON and nothing else.";
    const content = `That is not the answer that was asked for: ${problem} ${how}`;
    return { role: "user", content, metadata: { [AGAIN_KEY]: true } };
  }
}

/** The JSON Schema of a structured output. @throws {SessionError} `INVALID_OPTION` if the schema provides none. */
export function outputSchema(schema: unknown): JsonObject {
  const read = readSchema(schema, { name: "output", remedy: "give one that does, or JSON Schema itself" });
  if ("schema" in read) return read.schema;
  const { problem, cause } = read;
  throw new SessionError("INVALID_OPTION", `The output ${problem}.`, cause === undefined ? undefined : { cause });
}

/** Whether a call gives the structured output. */
export function isAnswer({ name }: ToolCall): boolean {
  return name === ANSWER_TOOL;
}

/** Whether a message confirms that a call gave the structured output. */
export function isTaken(message: Message): boolean {
  return message.role === "tool" && message.name === ANSWER_TOOL && message.isError !== true;
}

/** The last answer in a transcript: the arguments of the call that gives it, otherwise its text. */
export function lastAnswerIn(transcript: Transcript): string {
  for (let index = transcript.length - 1; index >= 0; index--) {
    const message = transcript.at(index)?.message as Message;
    if (message.role === "assistant") {
      return message.toolCalls?.findLast(isAnswer)?.arguments ?? textOf(message.content);
    }
  }
  return "";
}

/** How often the model was told that its value is invalid, since the last user message. */
function invalidValues(transcript: Transcript): number {
  let times = 0;
  for (let index = transcript.length - 1; index >= 0; index--) {
    const message = transcript.at(index)?.message as Message;
    if (message.role === "user") {
      if (message.metadata?.[AGAIN_KEY] !== true) return times;
      times += 1;
    } else if (message.role === "tool" && message.name === ANSWER_TOOL && message.isError === true) times += 1;
  }
  return times;
}

/** Some models put JSON into a code fence. */
function unfenced(text: string): string {
  return /^\s*```\w*\n([\s\S]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
}
