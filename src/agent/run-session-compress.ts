import { SessionError } from "../session/errors.ts";
import { acceptable } from "../session/context.ts";
import { type AssistantMessage, type Message, textOf } from "../session/message.ts";
import { operation, Session } from "../session/session.ts";
import { Transcript } from "../session/transcript.ts";
import { checkRunOptions } from "./check-options.ts";
import { collectReply } from "./collect-reply.ts";
import type { RunOptions } from "./loop-options.ts";
import { LoopRun } from "./loop-run.ts";
import type { Model, ModelReply, ModelRequest } from "./model.ts";
import { openRunSink } from "./open-run-sink.ts";
import { readReply } from "./read-reply.ts";
import { withRetries } from "./retry.ts";
import { runErrorOf } from "./run-error.ts";
import { checkInputs, inputOf, registerInputs, type SessionInput, systemPromptOf } from "./run-session-loop.ts";
import { RunTelemetry } from "./telemetry.ts";
import { untilAborted } from "./until-aborted.ts";

/** How a session is compressed. */
export interface CompressOptions extends RunOptions {
  /** What the model is asked for, after the conversation. */
  readonly instruction?: string;
}

const INSTRUCTION =
  "Summarise this conversation so that another agent can go on from the summary alone: the goal, what was decided, what was done, what is left to do, and every fact that is still needed, word for word. Answer with the summary only.";

/**
 * Asks a model for a summary of a session, and makes it the only row, a user row, of a new one. Tools are off.
 *
 * @throws {SessionError} `SUMMARY_FAILED` for an answer that calls tools, is empty, or stopped for another reason than
 * that it was done; `INVALID_OPTION` at the call, before anything is started.
 */
export function runSessionCompress(user: SessionInput, agent: Session, options: CompressOptions): Promise<Session> {
  checkRunOptions(options);
  const { instruction } = options;
  if (instruction !== undefined && (typeof instruction !== "string" || instruction.trim() === "")) {
    throw new SessionError("INVALID_OPTION", "The instruction is empty; say what the summary is to tell.");
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
  const { progress } = run;
  progress.events.add({ type: "run-started" });
  const reply = await ask(run, requestOf(input, agent, options), options);
  const text = summaryIn(reply);
  progress.spend(reply.usage, reply.cost);
  if (options.persist !== undefined && options.persist !== false) {
    const { sandboxHandleId, leaseMs } = options;
    const { sink } = await openRunSink(options.persist, {
      runId: progress.runId,
      output: progress.output,
      // Nothing of the conversation is kept, and the output says nothing yet.
      user: progress.output,
      systemPrompt: systemPromptOf(agent),
      onLost: run.lose,
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(sandboxHandleId === undefined ? {} : { sandboxHandleId }),
    });
    run.keepIn(sink);
  }
  await progress.add([{ role: "user", content: text }]);
  while (!(await run.finish(false))) await progress.add(await run.inputs.takeAll());
}

function requestOf(input: Session, agent: Session, options: CompressOptions): ModelRequest {
  const { temperature, maxOutputTokens, stop, providerOptions, thinkingLevel, instruction = INSTRUCTION } = options;
  const asked: Message = { role: "user", content: instruction };
  return {
    messages: [...agent.transcript.toMessages(), ...acceptable(input.transcript.toMessages()), asked],
    toolChoice: "none",
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(stop === undefined ? {} : { stop }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
  };
}

async function ask(run: LoopRun, request: ModelRequest, options: CompressOptions): Promise<AssistantMessage> {
  const { events, signal, output } = run.progress;
  const { model, executor } = options;
  const telemetry = await RunTelemetry.load(output.id, options.telemetry);
  events.add({ type: "round-started", round: 1 });
  const askOnce = async (): Promise<ModelReply> => {
    if (executor !== undefined) return executor.complete(request, { signal });
    return collectReply(model as Model, request, signal, (delta) => {
      if (delta.type !== "finish") events.add({ ...delta, round: 1 });
    });
  };
  const once = async (): Promise<AssistantMessage> =>
    readReply(await untilAborted(askOnce(), signal), model, options.agentName);
  const attempt = telemetry === null ? once : () => telemetry.chat(model, request, once);
  const message = await withRetries(attempt, options.retry ?? {}, signal, (retry) =>
    events.add({ type: "model-retry", round: 1, ...retry, error: runErrorOf(retry.error) }),
  );
  const { usage, cost, stopReason = "stop" } = message;
  if (usage !== undefined) events.add({ type: "usage", round: 1, usage, ...(cost === undefined ? {} : { cost }) });
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
