import { hostname } from "node:os";
import { checkOptionsOf } from "../session/check-arguments.ts";
import { defined } from "../internal/defined.ts";
import { SessionError, show } from "../session/errors.ts";
import { type Message, textOf } from "../session/message.ts";
import { HookRunner } from "../session/context/hooks.ts";
import { operation, Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import { Transcript } from "../session/value/transcript.ts";
import { SessionTree } from "../tree/session-tree.ts";
import { BudgetWatch, spentBefore } from "./budget-watch.ts";
import { checkLoopOptions } from "./check-options.ts";
import { ContextRoom } from "./context/context-room.ts";
import { describeThrown } from "./describe-thrown.ts";
import { Loop, openCalls } from "./loop.ts";
import { isAnswer } from "./output/run-output.ts";
import { instructionMessages } from "./context/logged-request.ts";
import { LoopContext } from "./context/loop-context.ts";
import { ResultShortener } from "./context/result-shortener.ts";
import { LOOP_HABITS, LOOP_KEYS, type LoopOptions, type RunOptions } from "./loop-options.ts";
import { LoopRun } from "./loop-run.ts";
import type { OfferedTools } from "./tools/offer-tools.ts";
import { type WithModelName, withNamedModel } from "./model/named-model.ts";
import { openRunLog } from "./persist/open-run-log.ts";
import { type ResumeState, resumeStateOf } from "./persist/resume-state.ts";
import type { RunAgent } from "./persist/persist-option.ts";
import { hasGivenPrompt } from "./persist/resume-state.ts";
import { presentSetup, type SentSetup } from "./persist/run-setup.ts";
import type { OutputSchema, SessionRun } from "./session-run.ts";
import { RunTelemetry } from "./telemetry.ts";
import { untilAborted } from "./follow-abort.ts";

/** A session, or a run whose result is a session. */
export type SessionInput = Session | SessionRun;

/**
 * Runs a session with an agent: asks the model, runs the tools that it calls, and repeats until it stops.
 *
 * The output starts with the user's rows, followed by the rows of the model and the tools; the agent's rows are sent
 * first and are not copied. Both inputs stay unchanged. The run starts immediately and continues whether or not it is
 * awaited.
 *
 * @example
 * const user = Session.fromUserMessage("Which files are there?").to("local");
 * const agent = Session.fromAgentPrompt("You keep a small workspace.");
 * const run = runSessionLoop(user, agent, { model: "openai/gpt-5-mini" });
 * for await (const event of run) console.log(event.type);
 * console.log((await run).text());
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_TOOL` synchronously, before anything is started or written.
 */
export function runSessionLoop<const S extends OutputSchema = undefined>(
  user: SessionInput,
  agent: Session,
  given: WithModelName<LoopOptions> & { readonly output?: S },
): SessionRun<S> {
  checkOptionsOf(given, LOOP_KEYS, "runSessionLoop", LOOP_HABITS);
  const options = withNamedModel<LoopOptions>(given, "runSessionLoop");
  const offered = checkLoopOptions(options);
  const source = checkInputs(user, agent);
  const output = Session.derive(source, user instanceof Session ? user.transcript : Transcript.empty, {
    lineage: operation("op_session_loop", "runSessionLoop", [source.id, agent.id]),
  });
  if (options.register !== false) registerInputs(source, agent);
  let loop: Loop | null = null;
  const started = new LoopRun({
    source,
    output,
    options,
    work: {
      async perform(run) {
        const telemetry = await RunTelemetry.load(output.id, options.telemetry);
        const work = async (): Promise<void> => {
          const input = await inputOf(user, run);
          const ready = await startLoop({ run, input, agent, options, offered, telemetry });
          loop = ready.loop;
          let truncated = await loop.run(ready.resume);
          while (!(await run.finish({ truncated, given: loop.given }))) truncated = await loop.goOn(truncated);
        };
        await (telemetry === null ? work() : telemetry.run("invoke_agent", options.agentName, work));
      },
      async stopped() {
        await loop?.keepPartialAnswer();
      },
    },
  });
  return started as SessionRun as SessionRun<S>;
}

/** The session of the user side; for a run in progress, its present state. */
export function checkInputs(user: SessionInput, agent: Session): Session {
  if (!(agent instanceof Session)) throw new SessionError("INVALID_OPTION", "The agent is not a session.");
  if (user instanceof Session) return user;
  if (user instanceof LoopRun) return user.log.output;
  throw new SessionError(
    "INVALID_OPTION",
    "The input is not a session, such as Session.fromUserMessage makes, and not a run; agent.run takes a text, content parts or messages, too.",
  );
}

/** Registers the sessions from which a run starts, as long as other code refers to them. */
export function registerInputs(...sessions: readonly Session[]): void {
  for (const session of sessions) {
    if (sessionRegistry.get(session.id) !== undefined) continue;
    sessionRegistry.register(session);
    sessionRegistry.finish(session.id);
  }
}

/** The finished input; the output takes over its sandbox, which may have been opened in the meantime. */
export async function inputOf(input: SessionInput, run: LoopRun): Promise<Session> {
  if (input instanceof Session) return input;
  const session = await untilAborted(input, run.log.signal);
  if (session.status === "parked") {
    throw new SessionError(
      "APPROVAL_NEEDED",
      `Run ${input.runId}, which this one starts from, is parked; answer its questions and recover it first.`,
    );
  }
  Session.place(run.log.output, session);
  return session;
}

interface LoopStart {
  readonly run: LoopRun;
  readonly input: Session;
  readonly agent: Session;
  readonly options: LoopOptions;
  readonly offered: OfferedTools;
  readonly telemetry: RunTelemetry | null;
}

async function startLoop({ run, input, agent, options, offered, telemetry }: LoopStart) {
  const { log, inputs, approvals } = run;
  checkOpenCalls(run, input, options, offered);
  await keep(run, input, agent, options, offered);
  const user = log.output;
  const resume = resumeIn(log.sessionId, resumeStateOf(input.transcript));
  inputs.restore(resume?.queued ?? []);
  const { budget, executor, persist, compaction } = options;
  const treeHooks = persist instanceof SessionTree ? persist.hooks : noHooks();
  const hooks = compaction === false ? treeHooks : treeHooks.with([compaction?.hooks ?? []].flat());
  const context = new LoopContext(messagesOf(agent, log.setup?.instructions), user.transcript);
  const setup = log.setup as SentSetup;
  const { spending } = run;
  const room = new ContextRoom({ options, context, hooks, log, spending, inside: run.inside });
  const loop = new Loop({
    options,
    setup,
    inputs,
    context,
    room,
    shortener: new ResultShortener({ options, context, log, isFull: () => room.isFull }),
    budget:
      budget === undefined ? null : new BudgetWatch(budget, options.onBudget, spentBefore(budget, input, log.output)),
    spending,
    telemetry,
    host: {
      log,
      approvals,
      tools: offered.tools,
      ask: run.ask,
      executor: executor ?? null,
      inside: run.inside,
      observe: telemetry === null ? (_call, work) => work() : (call, work) => telemetry.tool(call, work),
    },
  });
  return { loop, resume };
}

/**
 * Checked before anything is written: a program that does not have a tool must not answer an open call of it, which may
 * have had its effect.
 *
 * @throws {SessionError} `TOOL_NOT_FOUND` if the recovered run waits for the result of a tool that this program lacks.
 * For a tool that the run itself did not have, the model gets an error instead.
 */
function checkOpenCalls(run: LoopRun, input: Session, { agentName }: LoopOptions, { tools }: OfferedTools): void {
  const resume = resumeStateOf(input.transcript);
  const { runId } = run.log;
  if (resume === null || resume.inherited || resume.runId !== runId) return;
  const { open } = openCalls(input, { besideOthers: true });
  const had = (name: string): boolean => resume.tools === null || resume.tools.includes(name);
  const missing = open.find((call) => !isAnswer(call) && !tools.has(call.name) && had(call.name));
  if (missing === undefined) return;
  const who = agentName === undefined ? "the agent" : `agent ${show(agentName)}`;
  throw new SessionError(
    "TOOL_NOT_FOUND",
    `Run ${show(runId)} of session ${resume.sessionId} waits for the result of ${show(missing.name)}, a tool that ${who} of process ${process.pid} on ${hostname()} does not have; continue it in a program that has the tool, or cancel the run.`,
  );
}

/**
 * Only the session of the run ensures that a single process continues it: in another session, its calls and input count
 * as another's.
 */
function resumeIn(sessionId: string | null, resume: ResumeState | null): ResumeState | null {
  if (resume === null || sessionId === resume.sessionId) return resume;
  return { ...resume, inherited: true, answered: false, queued: [] };
}

/**
 * Opens the log of a run and starts it there. The run works on the stored history, if there is one, followed by the
 * input.
 */
export async function keep(
  run: LoopRun,
  input: Session,
  agent: Session,
  options: LoopOptions,
  offered?: OfferedTools,
): Promise<void> {
  const { persist = false, sandboxHandleId, leaseMs, executor, model, recordInstructions = true } = options;
  // A missing package must be detected before a session is created for a run that cannot ask its model.
  if (executor === undefined) await model?.prepare?.();
  const { runId, output, signal } = run.log;
  const instructions = systemPromptOf(agent);
  const given = { instructions, replacesInstructions: hasGivenPrompt(agent) };
  await openRunLog(persist, {
    runId,
    answers: answersOf(options, offered),
    output,
    user: input,
    ...(recordInstructions && { systemPrompt: instructions }),
    ...(offered && { setup: presentSetup(options, offered, given) }),
    signal,
    onLost: run.lose,
    begin: (beginning) => run.begin(beginning),
    ...defined({ leaseMs, sandboxHandleId }),
  });
}

function answersOf({ agentName, model }: RunOptions, offered: OfferedTools | undefined): RunAgent {
  return defined({
    agent: agentName,
    model: model && `${model.provider}/${model.id}`,
    tools: offered?.schemas.map(({ name }) => name),
  });
}

/** The rows that an agent sends before a conversation: its instructions as one message, as they are recorded, and its other rows. */
function messagesOf(agent: Session, instructions: string | undefined): readonly Message[] {
  const others = agent.transcript.toMessages().filter(({ role }) => role !== "system");
  return [...instructionMessages(instructions), ...others];
}

/** The instructions of an agent as one text; null if it has none. */
function systemPromptOf(agent: Session): string | null {
  const texts = agent.transcript.rows.filter((row) => row.kind === "system").map((row) => textOf(row.message.content));
  return texts.length === 0 ? null : texts.join("\n\n");
}

function noHooks(): HookRunner {
  return new HookRunner([], (error, hook) => process.emitWarning(`A ${hook} handler failed: ${describeThrown(error)}`));
}
