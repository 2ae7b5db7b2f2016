import type { Agent } from "../agent/agent.ts";
import type { Unsigned } from "../agent/event-log.ts";
import { followAbort, untilAborted } from "../agent/follow-abort.ts";
import type { LoopOptions } from "../agent/loop-options.ts";
import { runErrorOf } from "../agent/run-error.ts";
import type { SessionRun } from "../agent/session-run.ts";
import type { AskPolicy } from "../agent/tools/ask-policy.ts";
import { SessionError, show } from "../session/errors.ts";
import { textOf, type AssistantMessage } from "../session/message.ts";
import { operation, Session } from "../session/value/session.ts";
import { Transcript } from "../session/value/transcript.ts";
import { type GroupItem, isEmpty, rowsFor } from "./agent-view.ts";
import { type ExecutingAgent, type GroupSeat, isExecuting, type GroupAnswer } from "./group-agent.ts";
import { answerMessage, passDraft, refusalDraft } from "./group-drafts.ts";
import type { GroupEvent } from "./group-event.ts";
import type { GroupLog } from "./group-log.ts";
import { GroupSink } from "./group-sink.ts";
import type { GroupMember } from "./turns/turn-manager.ts";

/** What it takes to ask an agent. */
export interface Asking {
  readonly sessionId: string;
  /** The group's own run. */
  readonly runId: string;
  readonly log: GroupLog;
  /** The session whose sandbox the agents share. */
  readonly place: Session;
  readonly agents: readonly GroupMember[];
  readonly messageId: string;
  readonly timeoutMs: number | null;
  /** Which calls run without a person's word; an agent's own word may be stricter. */
  readonly ask: AskPolicy | undefined;
  /** How long calls wait for a person's word; an agent's own word holds where the group has none. */
  readonly waiting: Pick<LoopOptions, "onApproval" | "park">;
  /** Whether anyone has subscribed to the events of the group. */
  readonly isFollowed: () => boolean;
  readonly signal: AbortSignal;
  readonly emit: (event: Unsigned<GroupEvent>) => void;
  /** Told which run is at work, and when none is. */
  readonly atWork: (run: SessionRun | null) => void;
}

type Finished = Unsigned<Extract<GroupEvent, { type: "agent-finished" }>>;

/**
 * Lets an agent have its go; what it says is durable when this resolves. Rejects with why the agent failed, or with the
 * signal's reason.
 */
export async function askAgent(seat: GroupSeat, visible: readonly GroupItem[], asking: Asking): Promise<Finished> {
  const controller = new AbortController();
  const { timeoutMs, signal } = asking;
  const unfollow = followAbort(signal, () => controller.abort(signal.reason));
  const late = new SessionError("ABORTED", `Agent ${show(seat.name)} did not answer within ${timeoutMs} ms.`);
  const timer = timeoutMs === null ? undefined : setTimeout(() => controller.abort(late), timeoutMs);
  try {
    const own = { ...asking, signal: controller.signal };
    return await (isExecuting(seat.agent)
      ? execute(seat, seat.agent, visible, own)
      : runLoop(seat, seat.agent, visible, own));
  } catch (error) {
    // A run that was stopped says so in its own words; why it was stopped says more.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    unfollow();
  }
}

async function execute(
  seat: GroupSeat,
  agent: ExecutingAgent,
  visible: readonly GroupItem[],
  { sessionId, log, agents, messageId, signal }: Asking,
): Promise<Finished> {
  const { name, role, visibility } = seat;
  const turns = visible.map(({ turn }) => turn);
  const question = textOf(turns.find(({ turnId }) => turnId === messageId)?.content ?? null);
  const given = (async () => agent.execute(question, turns, { sessionId, role, agents, signal }))();
  const answer = readAnswer(name, await untilAborted(given, signal));
  if (answer.kind === "refused") {
    await log.append([refusalDraft(name, answer.error)]);
    return { ...finished(name, "refused"), error: runErrorOf(answer.error) };
  }
  if (answer.kind === "passed") {
    await log.append([passDraft(name, answer.message ?? {})]);
    return finished(name, "passed");
  }
  const message = answerMessage(name, visibility, answer.message);
  const [entry] = await log.append([{ type: "message", message }]);
  return { ...finished(name, "spoke"), turnId: entry?.id ?? null, text: textOf(message.content) };
}

async function runLoop(
  seat: GroupSeat,
  agent: Agent,
  visible: readonly GroupItem[],
  { sessionId, runId, log, place, ask, waiting, isFollowed, signal, emit, atWork }: Asking,
): Promise<Finished> {
  const { name } = seat;
  const sink = new GroupSink({ sessionId, runId, log, seat, isFollowed });
  const user = Session.derive(place, Transcript.of(rowsFor(name, visible)), {
    lineage: operation("op_fork", "group", [place.id]),
  });
  try {
    const run = agent.run(user, {
      signal,
      register: false,
      ...(ask && { ask }),
      ...waiting,
      persist: { openSink: async () => ({ sink, user }) },
    });
    atWork(run);
    run.listen((event) => emit({ ...event, agent: name }));
    const output = await run.synchronize();
    await output.closeSandbox();
  } finally {
    atWork(null);
    await user.closeSandbox();
  }
  const { answer } = sink;
  if (answer !== null) {
    return { ...finished(name, "spoke"), turnId: answer.id, text: textOf(answer.message.content) };
  }
  // Cut short by its rounds or its budget, the agent has nothing for the group.
  if (!sink.passed) await log.append([passDraft(name)]);
  return finished(name, "passed");
}

function finished(agent: string, kind: Finished["kind"]): Finished {
  return { type: "agent-finished", agent, kind, turnId: null, text: "" };
}

/** What an agent's answer comes to. */
type ReadAnswer =
  | { readonly kind: "spoke"; readonly message: AssistantMessage }
  | { readonly kind: "passed"; readonly message: AssistantMessage | null }
  | { readonly kind: "refused"; readonly error: unknown };

/**
 * What an agent said, whatever form it said it in.
 *
 * @throws {SessionError} `INVALID_VALUE` for anything that is no answer.
 */
function readAnswer(agentName: string, answer: GroupAnswer): ReadAnswer {
  if (answer === null || answer === undefined) return { kind: "passed", message: null };
  if (typeof answer === "string") return spokeOrPassed({ role: "assistant", content: answer });
  if (typeof answer === "object" && "ok" in answer && answer.ok === false) {
    return { kind: "refused", error: answer.error };
  }
  if (typeof answer !== "object" || !("content" in answer)) {
    throw new SessionError(
      "INVALID_VALUE",
      `Agent ${show(agentName)} answered with ${show(answer)}; return a text, { content } or { ok: false, error }.`,
    );
  }
  const { content, usage, cost, provider, model, metadata } = answer;
  return spokeOrPassed({
    role: "assistant",
    content,
    ...(usage === undefined ? {} : { usage }),
    ...(cost === undefined ? {} : { cost }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(metadata === undefined ? {} : { metadata }),
  });
}

function spokeOrPassed(message: AssistantMessage): ReadAnswer {
  const { content } = message;
  // Anything else is for the store to refuse, which says what is wrong with it.
  const readable = content === null || typeof content === "string" || Array.isArray(content);
  return { kind: readable && isEmpty(message) ? "passed" : "spoke", message };
}
