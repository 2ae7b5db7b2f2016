import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { defined } from "../internal/defined.ts";
import { SessionError } from "../session/errors.ts";
import { acceptable } from "../session/context/context.ts";
import { type AssistantMessage, type Message, textOf } from "../session/message.ts";
import { operation, Session } from "../session/value/session.ts";
import { Transcript } from "../session/value/transcript.ts";
import { type WithModelName, withNamedModel } from "./model/named-model.ts";
import { askModel, parametersOf } from "./model/ask-model.ts";
import { checkRunOptions } from "./check-options.ts";
import { LOOP_HABITS, RUN_KEYS, type RunOptions } from "./loop-options.ts";
import { LoopRun } from "./loop-run.ts";
import type { ModelRequest } from "./model/model.ts";
import { priced } from "./run-spending.ts";
import { checkInputs, inputOf, keep, registerInputs, type SessionInput } from "./run-session-loop.ts";
import { RunTelemetry } from "./telemetry.ts";

/** Options for compressing a session. */
export interface CompressOptions extends RunOptions {
  /** The instruction for the model, placed after the conversation. */
  readonly instruction?: string;
}

const COMPRESS_KEYS: KeysOf<CompressOptions> = { ...RUN_KEYS, instruction: true };

const INSTRUCTION =
  "Summarise this conversation so that another agent can go on from the summary alone: the goal, what was decided, what was done, what is left to do, and every fact that is still needed, word for word. Answer with the summary only.";

/**
 * Asks a model for a summary of a session and returns a new session with the summary as its only row, a user row. Tools
 * are off.
 *
 * @example
 * const talk = Session.fromUserMessage("A long story, told again and again.");
 * const agent = Session.fromAgentPrompt("You sum up what you are told.");
 * const short = await runSessionCompress(talk, agent, { model: "openai/gpt-5-mini" });
 *
 * @throws {SessionError} `SUMMARY_FAILED` for an answer that calls tools, is empty, or did not end normally;
 * `INVALID_OPTION` synchronously, before anything is started.
 */
export function runSessionCompress(
  user: SessionInput,
  agent: Session,
  given: WithModelName<CompressOptions>,
): Promise<Session> {
  checkOptionsOf(given, COMPRESS_KEYS, "runSessionCompress", LOOP_HABITS);
  const options = withNamedModel<CompressOptions>(given, "runSessionCompress");
  checkRunOptions(options);
  const { instruction } = options;
  if (instruction !== undefined && (typeof instruction !== "string" || instruction.trim() === "")) {
    throw new SessionError("INVALID_OPTION", "The instruction is empty; describe the summary to write.");
  }
  const source = checkInputs(user, agent);
  const extras = [
    ["compression.lossy", true],
    ["compression.rows_out", 1],
  ] as const;
  const output = Session.derive(source, Transcript.empty, {
    lineage: operation("op_session_compress", "runSessionCompress", [source.id, agent.id], extras),
  });
  if (options.register !== false) registerInputs(source, agent);
  const run = new LoopRun({
    source,
    output,
    options,
    work: { perform: (started) => compress(started, user, agent, options) },
  });
  return run.synchronize();
}

async function compress(run: LoopRun, user: SessionInput, agent: Session, options: CompressOptions): Promise<void> {
  const input = await inputOf(user, run);
  const { log } = run;
  log.announce();
  const request = requestOf(input, agent, options);
  const asking = (): Promise<AssistantMessage> => ask(run, request, options);
  const reply = await (run.spending === null ? asking() : run.spending.ask(priced(options.model, request), asking));
  const text = summaryIn(reply);
  // The conversation is not copied, and the output has no rows yet.
  await keep(run, log.output, agent, options);
  const { usage, cost } = reply;
  Session.grow(log.output, defined({ usage, cost }));
  await log.add([{ role: "user", content: text }]);
  while (!(await run.finish({ truncated: false, given: null }))) await log.add(await run.inputs.takeAll());
}

function requestOf(input: Session, agent: Session, options: CompressOptions): ModelRequest {
  const asked: Message = { role: "user", content: options.instruction ?? INSTRUCTION };
  return {
    messages: [...agent.transcript.toMessages(), ...acceptable(input.transcript.toMessages()), asked],
    toolChoice: "none",
    ...parametersOf(options),
  };
}

async function ask({ log }: LoopRun, request: ModelRequest, options: CompressOptions): Promise<AssistantMessage> {
  const { events, output } = log;
  const telemetry = await RunTelemetry.load(output.id, options.telemetry);
  events.add({ type: "round-started", round: 1 });
  const message = await askModel(request, { options, log, telemetry, round: 1 });
  const { usage, cost, stopReason = "stop" } = message;
  if (usage !== undefined) events.add({ type: "usage", round: 1, usage, ...defined({ cost }) });
  events.add({ type: "round-finished", round: 1, message, stopReason });
  return message;
}

function summaryIn(reply: AssistantMessage): string {
  if ((reply.toolCalls?.length ?? 0) > 0) throw failed("the model called a tool");
  if (reply.stopReason !== undefined && reply.stopReason !== "stop") {
    throw failed(`the model stopped with "${reply.stopReason}"`);
  }
  const text = textOf(reply.content).trim();
  if (text === "") throw failed("the model answered nothing");
  return text;
}

function failed(problem: string): SessionError {
  return new SessionError("SUMMARY_FAILED", `The session was not compressed: ${problem}.`);
}
