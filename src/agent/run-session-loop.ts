import { SessionError } from "../session/errors.ts";
import { textOf } from "../session/message.ts";
import { HookRunner } from "../session/run-hooks.ts";
import { operation, Session } from "../session/session.ts";
import { Transcript } from "../session/transcript.ts";
import { SessionTree } from "../tree/session-tree.ts";
import { BudgetWatch } from "./budget-watch.ts";
import { Loop } from "./loop.ts";
import { LoopContext } from "./loop-context.ts";
import { checkLoopOptions, type LoopOptions, schemasOf } from "./loop-options.ts";
import { LoopRun } from "./loop-run.ts";
import { openRunSink } from "./open-run-sink.ts";
import { resumeStateOf } from "./resume-state.ts";
import type { SessionRun } from "./session-run.ts";
import { spentBefore } from "./spent-before.ts";
import { RunTelemetry } from "./telemetry.ts";
import type { Tool } from "./tool.ts";

/** A session, or a run that will come to one. */
export type SessionInput = Session | SessionRun;

/**
 * Runs a session through an agent: asks the model, runs the tools it calls, and asks again until it stops.
 *
 * The output starts with the user's rows and goes on with what the model and the tools said; the agent's rows are sent
 * first and are not copied. Both inputs stay as they are. The run begins at once and goes on whether or not it is awaited.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_TOOL` at the call, before anything is started or written.
 */
export function runSessionLoop(user: SessionInput, agent: Session, options: LoopOptions): SessionRun {
  const tools = checkLoopOptions(options);
  const source = checkInput(user);
  if (!(agent instanceof Session)) throw new SessionError("INVALID_OPTION", "The agent is not a session.");
  const output = Session.derive(source, Transcript.empty, {
    lineage: operation("op_session_loop", "runSessionLoop", [source.id, agent.id]),
  });
  let loop: Loop | null = null;
  return new LoopRun({
    source,
    output,
    onEvent: options.onEvent,
    signal: options.signal,
    work: {
      async perform(run) {
        const telemetry = await RunTelemetry.load(output.id, options.telemetry);
        const work = async (): Promise<{ readonly truncated: boolean }> => {
          const input = await inputOf(user, run);
          const started = await startLoop({ run, input, agent, options, tools, telemetry });
          loop = started.loop;
          return loop.run(started.resume);
        };
        return telemetry === null ? work() : telemetry.run("invoke_agent", options.agentName, work);
      },
      async stopped() {
        await loop?.keepPartialAnswer();
      },
    },
  });
}

/** The session that an input is or will be, as far as it has come. */
export function checkInput(input: SessionInput): Session {
  if (input instanceof Session) return input;
  if (input instanceof LoopRun) return input.progress.output;
  throw new SessionError("INVALID_OPTION", "The user side is neither a session nor a run.");
}

/** The finished input; the output takes its place for a sandbox, which may have been opened meanwhile. */
export async function inputOf(input: SessionInput, run: LoopRun): Promise<Session> {
  if (input instanceof Session) return input;
  const session = await input;
  Session.place(run.progress.output, session);
  return session;
}

interface LoopStart {
  readonly run: LoopRun;
  readonly input: Session;
  readonly agent: Session;
  readonly options: LoopOptions;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly telemetry: RunTelemetry | null;
}

async function startLoop({ run, input, agent, options, tools, telemetry }: LoopStart) {
  const { progress, inputs, approvals } = run;
  const resume = resumeStateOf(input.transcript);
  const user = await keep(run, input, agent, options);
  Session.grow(progress.output, { transcript: user.transcript });
  inputs.restore(resume?.queued ?? []);
  const { budget, executor, persist, compaction } = options;
  const treeHooks = persist instanceof SessionTree ? persist.hooks : noHooks();
  const loop = new Loop({
    options,
    schemas: schemasOf(tools, executor),
    inputs,
    context: new LoopContext(agent.transcript.toMessages(), user.transcript),
    budget: budget === undefined ? null : new BudgetWatch(budget, options.onBudget, spentBefore(budget, input)),
    hooks: compaction === false ? treeHooks : treeHooks.with([compaction?.hooks ?? []].flat()),
    telemetry,
    host: {
      progress,
      approvals,
      tools,
      executor: executor ?? null,
      inside: run.inside,
      observe: telemetry === null ? (_call, work) => work() : (call, work) => telemetry.tool(call, work),
    },
  });
  return { loop, resume };
}

/** Opens the place where the run is kept; the session to start from, which is longer where that place holds a past. */
async function keep(run: LoopRun, input: Session, agent: Session, options: LoopOptions): Promise<Session> {
  const { persist = false, sandboxHandleId } = options;
  if (persist === false) return input;
  const { progress } = run;
  const { sink, user } = await openRunSink(persist, {
    runId: progress.runId,
    output: progress.output,
    user: input,
    systemPrompt: systemPromptOf(agent),
    ...(sandboxHandleId === undefined ? {} : { sandboxHandleId }),
  });
  progress.keepIn(sink);
  if (user !== input) Session.place(progress.output, user);
  return user;
}

/** The instructions of an agent as one text; null when it has none. */
export function systemPromptOf(agent: Session): string | null {
  const texts = agent.transcript.rows.filter((row) => row.kind === "system").map((row) => textOf(row.message.content));
  return texts.length === 0 ? null : texts.join("\n\n");
}

function noHooks(): HookRunner {
  return new HookRunner([], (error, hook) => process.emitWarning(`A ${hook} handler failed: ${String(error)}`));
}
