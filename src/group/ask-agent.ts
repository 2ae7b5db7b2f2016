import type { Agent } from "../agent/agent.ts";
import type { Unsigned } from "../agent/event-log.ts";
import { withPayer } from "../agent/run-spending.ts";
import { followAbort, untilAborted } from "../agent/follow-abort.ts";
import type { LoopOptions } from "../agent/loop-options.ts";
import { startedFirst } from "../agent/persist/start-drafts.ts";
import type { SessionRun } from "../agent/session-run.ts";
import type { AskPolicy } from "../agent/tools/ask-policy.ts";
import { defined } from "../internal/defined.ts";
import { SessionError, show } from "../session/errors.ts";
import { answerState, newRun, type RunState } from "../session/log/run-fold.ts";
import { type AssistantMessage, textOf } from "../session/message.ts";
import type { Payer } from "../session/payer.ts";
import { operation, Session } from "../session/value/session.ts";
import { Transcript } from "../session/value/transcript.ts";
import { type GroupItem, isEmpty, rowsFor } from "./agent-view.ts";
import { GroupAccess } from "./group-access.ts";
import { type ExecutingAgent, type GroupAnswer, type GroupSeat, isExecuting } from "./group-agent.ts";
import { answerMessage, passDraft, refusalDraft } from "./group-drafts.ts";
import type { GroupEvent } from "./group-event.ts";
import type { GroupLog } from "./group-log.ts";
import type { GroupMember } from "./turns/turn-manager.ts";

/** The arguments of `askAgent`. */
export interface AskAgentParts {
  readonly sessionId: string;
  /** The id of the group's run. */
  readonly runId: string;
  readonly log: GroupLog;
  /** The session whose sandbox the agents share. */
  readonly place: Session;
  readonly agents: readonly GroupMember[];
  readonly messageId: string;
  readonly timeoutMs: number | null;
  /** Which calls need approval; an agent's own policy may be stricter. */
  readonly ask: AskPolicy | undefined;
  /** How long calls wait for approval. An agent's own options apply if the group has none. */
  readonly waiting: Pick<LoopOptions, "onApproval" | "park">;
  /** The messages that the agent may see now. */
  readonly visibleNow: () => readonly GroupItem[];
  /** Whether anyone has subscribed to the events of the group. */
  readonly isFollowed: () => boolean;
  /** The payer of the agents' requests; null if there is none. */
  readonly payer: Payer | null;
  readonly signal: AbortSignal;
  readonly emit: (event: Unsigned<GroupEvent>) => void;
  /** Called with the agent's run when it starts, and with null when it ends. */
  readonly atWork: (run: SessionRun | null) => void;
}

/**
 * Lets an agent take its turn; its answer is durable when this resolves. Rejects with the agent's error, or with the
 * signal's reason.
 */
export async function askAgent(seat: GroupSeat, visible: readonly GroupItem[], asking: AskAgentParts): Promise<void> {
  const controller = new AbortController();
  const { timeoutMs, signal } = asking;
  const unfollow = followAbort(signal, () => controller.abort(signal.reason));
  const late = new SessionError("ABORTED", `Agent ${show(seat.name)} did not answer within ${timeoutMs} ms.`);
  const timer = timeoutMs === null ? undefined : setTimeout(() => controller.abort(late), timeoutMs);
  try {
    const own = { ...asking, signal: controller.signal };
    await (isExecuting(seat.agent) ? execute(seat, seat.agent, visible, own) : runLoop(seat, seat.agent, visible, own));
  } catch (error) {
    // A stopped run rejects with a general error; the reason why it was stopped is more specific.
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
  { sessionId, log, agents, messageId, payer, signal }: AskAgentParts,
): Promise<void> {
  const { name, role, visibility } = seat;
  const turns = visible.map(({ turn }) => turn);
  const question = textOf(turns.find(({ turnId }) => turnId === messageId)?.content ?? null);
  const ask = async (): Promise<GroupAnswer> =>
    untilAborted((async () => agent.execute(question, turns, { sessionId, role, agents, signal }))(), signal);
  // Only its answer says what it has spent, so that about the least is reserved.
  const given = await withPayer(payer, async (spending) => {
    if (spending === null) return ask();
    let answer: GroupAnswer;
    await spending.ask({ model: undefined, inputTokens: 0 }, async () => {
      answer = await ask();
      return spendingIn(answer);
    });
    return answer;
  });
  const answer = readAnswer(name, given);
  if (answer.kind === "refused") {
    await log.append([refusalDraft(name, answer.error)]);
  } else if (answer.kind === "passed") {
    await log.append([passDraft(name, answer.message ?? {})]);
  } else {
    await log.append([{ type: "message", message: answerMessage(name, visibility, answer.message) }]);
  }
}

async function runLoop(
  seat: GroupSeat,
  agent: Agent,
  visible: readonly GroupItem[],
  { runId, log, place, ask, waiting, visibleNow, isFollowed, payer, signal, emit, atWork }: AskAgentParts,
): Promise<void> {
  const { name } = seat;
  const access = new GroupAccess({ log, seat, visibleNow, isFollowed, payer });
  const user = Session.derive(place, Transcript.of(rowsFor(name, visible)), {
    lineage: operation("op_fork", "group", [place.id]),
  });
  try {
    const run = agent.run(user, {
      signal,
      register: false,
      ...(ask && { ask }),
      ...waiting,
      // The agent's run uses the id of the group's run, so that its questions are found through the open run.
      runId,
      persist: {
        openLog: async ({ begin, answers = {}, setup: present }) => {
          const setup = present === undefined ? null : await log.setupOf(present);
          await begin({
            access,
            state: stateOf(name, log.run),
            from: 0,
            lastId: log.leafId,
            atLeaf: true,
            user,
            append: {},
            setup,
            drafts: [startedFirst({ runId, answers }, 0)],
          });
        },
      },
    });
    atWork(run);
    // The group's log records the questions of its agents.
    run.listen((event, _position, source) => {
      if (event.type !== "approval-required" || source === "repeated") emit({ ...event, agent: name });
    });
    const output = await run.synchronize();
    await output.closeSandbox();
  } finally {
    atWork(null);
    await user.closeSandbox();
  }
  // If the round limit or the budget ended the agent's run, it has no answer for the group.
  if (access.answer === null && !access.passed) await log.append([passDraft(name)]);
}

/** The state from which an agent's run starts: its limits hold over all claims of its turn. */
function stateOf(agent: string, { runId, group }: RunState): RunState {
  const turn = group?.turn?.agent === agent ? group.turn : null;
  if (turn === null) return newRun(runId);
  const { round, toolRounds, usage, cost, answer } = turn;
  const last = answer === null ? null : answerState(answer.id, answer.calls, null);
  return { ...newRun(runId), round, toolRounds, usage, cost, answer: last };
}

/** The kinds of answers that an agent can give. */
type ReadAnswer =
  | { readonly kind: "spoke"; readonly message: AssistantMessage }
  | { readonly kind: "passed"; readonly message: AssistantMessage | null }
  | { readonly kind: "refused"; readonly error: unknown };

/**
 * Reads an agent's answer in any of its forms.
 *
 * @throws {SessionError} `INVALID_VALUE` for a value that is not an answer.
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
  // Other values are refused by the store, with a precise error.
  const readable = content === null || typeof content === "string" || Array.isArray(content);
  return { kind: readable && isEmpty(message) ? "passed" : "spoke", message };
}

/** The usage and cost of an answer, as far as it says them. */
function spendingIn(answer: GroupAnswer): Pick<AssistantMessage, "usage" | "cost"> {
  if (typeof answer !== "object" || answer === null || !("content" in answer)) return {};
  return defined({ usage: answer.usage, cost: answer.cost });
}
