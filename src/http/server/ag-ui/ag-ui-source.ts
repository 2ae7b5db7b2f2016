import type { Approval, RunEvent } from "../../../agent/run-event.ts";
import { type JsonObject, sameJson } from "../../../internal/json.ts";
import { inputIdOf } from "../../../session/log/open-runs.ts";
import { messageIdOf } from "../../ui/message-id.ts";
import { readSoFar, type SoFar } from "../chat/chat-session.ts";
import type { RouteCall } from "../route.ts";
import type { FrameSource } from "../runs/event-streams.ts";
import type { FedEvent, RunFeed } from "../runs/run-feed.ts";
import type { ServerServices } from "../server-services.ts";
import { type AgUiEvent, type Interrupt, PROTOCOL_VERSION } from "./ag-ui-core.ts";
import { toAgUiMessages, sent } from "./ag-ui-messages.ts";
import type { RunInput } from "./run-input.ts";
import { SaidOnce, type SaidPiece } from "../../../agent/said-once.ts";
import type { ToolCall } from "../../../session/message.ts";

/** What an AG-UI stream is made of. */
export interface AgUiSourceInit {
  readonly services: ServerServices;
  readonly call: RouteCall<unknown, RunInput>;
  /** The run that the stream tells of, which a client has another name for after an answer; null for none. */
  readonly run: { readonly runId: string; readonly feed: RunFeed } | null;
  /** What was said before what the stream tells. */
  readonly said: SoFar;
  /** Questions that were answered just now. */
  readonly answered: readonly string[];
}

/**
 * A session and its run as an AG-UI stream: what the log says, as snapshots, and what follows, up to where the run ends or
 * waits for a person's word.
 *
 * A snapshot goes so far into the log. What the run tells of that part is not sent again; what it tells live of a round
 * that the snapshot does not have is held until that is sure.
 */
export class AgUiSource implements FrameSource {
  readonly #init: AgUiSourceInit;
  readonly #writer: EventWriter;
  #sure: AgUiEvent[];
  #held: AgUiEvent[] = [];
  /** The last entry that the latest snapshot has. */
  #known = -1;
  #variables: JsonObject;
  /** What runs inside of tools ask: of their questions the log does not say the end. */
  readonly #inner = new Map<string, Approval>();
  /** How many questions follow at once. */
  #following = 0;
  /** Whether all was told. */
  done = false;

  constructor(init: AgUiSourceInit) {
    this.#init = init;
    this.#writer = new EventWriter(messageIdOf(inputIdOf(init.run?.runId ?? "")));
    this.#variables = init.said.variables;
    this.#sure = [
      { type: "RUN_STARTED", ...this.#names, protocolVersion: PROTOCOL_VERSION },
      { type: "STATE_SNAPSHOT", snapshot: this.#variables },
    ];
    this.#restate(init.said);
  }

  attach(wake: () => void): () => void {
    return this.#init.run?.feed.attach(wake) ?? (() => {});
  }

  async take(): Promise<string | null> {
    if (this.done) return null;
    const feed = this.#init.run?.feed;
    // What makes no event, such as what a snapshot has already, is no reason to wait for more.
    for (let more = true; more && !this.done; ) {
      const fed = (await feed?.take()) ?? null;
      for (const one of fed ?? []) await this.#tell(one);
      const interrupts = this.#interrupts();
      if (fed === null) await this.#finish({ type: "success" });
      else if (interrupts.length > 0) await this.#finish({ type: "interrupt", interrupts });
      if (feed !== undefined && feed.seen >= this.#known) this.#release();
      more = fed !== null && fed.length > 0 && this.#sure.length === 0;
    }
    const frames = this.#sure.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    this.#sure = [];
    return frames;
  }

  async #tell({ event: told, seq }: FedEvent): Promise<void> {
    if (this.done) return;
    const event = told as RunEvent;
    if (event.type === "run-finished") return this.#finish({ type: "success" });
    if (event.type === "run-failed") {
      const { code, message } = event.error;
      if (code === "ABORTED") return this.#finish({ type: "cancelled" });
      return this.#end({ type: "RUN_ERROR", message, ...(code !== null && { code }) });
    }
    if (event.type === "approval-required") this.#ask(event.approval);
    if (event.type === "approval-settled") this.#inner.delete(event.question);
    this.#held.push(...this.#writer.take(event));
    if (this.#writer.astray) {
      const { services, call } = this.#init;
      this.#release();
      this.#restate(await readSoFar(services, call.body.threadId, call.caller));
      this.#writer.astray = false;
    } else if (event.type === "round-finished" || event.type === "tool-finished") {
      if (seq <= this.#known) this.#held = [];
      else await this.#tellState();
    }
  }

  /** Sends all messages anew, instead of those that the reader has. */
  #restate({ turns, version }: SoFar): void {
    this.#known = version - 1;
    this.#sure.push({ type: "MESSAGES_SNAPSHOT", messages: toAgUiMessages(turns) });
  }

  async #tellState(): Promise<void> {
    const { services, call } = this.#init;
    const options = { ...call.as, turns: false, checkpoint: false };
    const snapshot = (await services.manager.getState(call.body.threadId, options))?.variables ?? {};
    if (!sameJson(snapshot, this.#variables)) this.#held.push({ type: "STATE_SNAPSHOT", snapshot });
    this.#variables = snapshot;
  }

  #release(): void {
    this.#sure.push(...this.#held);
    this.#held = [];
  }

  get #names(): { readonly threadId: string; readonly runId: string } {
    const { threadId, runId } = this.#init.call.body;
    return { threadId, runId };
  }

  #finish(outcome: Outcome): Promise<void> {
    return this.#end({ type: "RUN_FINISHED", ...this.#names, outcome });
  }

  async #end(event: AgUiEvent): Promise<void> {
    await this.#tellState();
    this.#held.push(...this.#writer.endStep(), event);
    this.#release();
    this.done = true;
  }

  #ask({ following = 0, ...approval }: Approval): void {
    this.#following = following;
    const isInner = approval.innerRunId !== undefined && !this.#init.answered.includes(approval.question);
    if (isInner) this.#inner.set(approval.question, approval);
  }

  /** What is asked, once nothing else comes before an answer: the calls before the first that waits are done by then. */
  #interrupts(): Interrupt[] {
    const own = this.#init.run?.feed.questions ?? [];
    const [next] = this.#writer.open;
    const waits = this.#following === 0 && own.some(({ callId }) => callId === next);
    if (!waits && this.#inner.size === 0) return [];
    const asked = new Map<string, Question>([...own, ...this.#inner.values()].map((one) => [one.question, one]));
    return [...asked.values()].map((one) => interruptOf(one, this.#writer.open.has(one.callId)));
  }
}

type Outcome = Exclude<Extract<AgUiEvent, { type: "RUN_FINISHED" }>["outcome"], undefined>;
type Question = Omit<Approval, "innerRunId" | "following"> & { readonly expiresAt?: string };

/** What an answer looks like, for a front end that makes a form of it. */
const ANSWER_SCHEMA = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"],
  additionalProperties: false,
};

function interruptOf(asked: Question, isOfRun: boolean): Interrupt {
  const { question: id, callId, name, arguments: input, effects, reach, expiresAt } = asked;
  return {
    ...{ id, message: `May ${name} run?`, responseSchema: ANSWER_SCHEMA },
    ...(isOfRun ? { reason: "tool_call", toolCallId: callId } : { reason: "confirmation" }),
    ...(expiresAt !== undefined && { expiresAt }),
    metadata: { name, arguments: input, effects, reach },
  };
}

/**
 * Writes the events of a run as events of AG-UI, under the ids that `toAgUiMessages` gives. Words and calls are chunks,
 * which a reader begins and ends by itself. Each turn of the model is a step.
 */
class EventWriter {
  readonly #asked: string;
  #said = new SaidOnce();
  #round = 1;
  #inStep = false;
  /** The kinds of words that the present round has. */
  readonly #kinds = new Set<SaidPiece["kind"]>();
  /** The calls of the last round that have no result, in their order. */
  readonly open: Set<string> = new Set();
  /** What was written is not what the log says: the messages are to be restated. */
  astray = false;

  /** `asked` is the id of the message that asked for the run. */
  constructor(asked: string) {
    this.#asked = asked;
  }

  /** What an event adds. */
  take(event: RunEvent): AgUiEvent[] {
    if (event.type === "run-started" || event.type === "model-retry") {
      // What was said in this round is void, and a reader can be told so.
      this.astray ||= this.#inStep;
      this.#said = new SaidOnce();
      return this.endStep();
    }
    const events = this.#said.take(event).flatMap((piece) => this.#words(piece));
    if (event.type === "round-finished") events.push(...this.#calls(event.message.toolCalls ?? []));
    if (event.type === "tool-finished") {
      const { callId: toolCallId, message } = event;
      const messageId = `${this.#asked}/${this.#round - 1}/${toolCallId}`;
      this.open.delete(toolCallId);
      events.push({ type: "TOOL_CALL_RESULT", messageId, toolCallId, content: sent(message.content) });
    }
    return events;
  }

  /** Ends the step that is under way. */
  endStep(): AgUiEvent[] {
    this.#kinds.clear();
    if (!this.#inStep) return [];
    this.#inStep = false;
    return [{ type: "STEP_FINISHED", stepName: `round ${this.#round}` }];
  }

  #beginStep(): AgUiEvent[] {
    if (this.#inStep) return [];
    this.#inStep = true;
    return [{ type: "STEP_STARTED", stepName: `round ${this.#round}` }];
  }

  #words({ kind, text: delta, begins }: SaidPiece): AgUiEvent[] {
    // It says anew what the reader has, or goes on after something else: the log says which.
    this.astray ||= begins === true && this.#kinds.has(kind);
    this.#kinds.add(kind);
    const id = `${this.#asked}/${this.#round}`;
    const chunk: AgUiEvent =
      kind === "text"
        ? { type: "TEXT_MESSAGE_CHUNK", messageId: id, role: "assistant", delta }
        : { type: "REASONING_MESSAGE_CHUNK", messageId: `${id}/thought`, delta };
    return [...this.#beginStep(), chunk];
  }

  /** The calls of a round, which ends with them. */
  #calls(calls: readonly ToolCall[]): AgUiEvent[] {
    this.open.clear();
    const parentMessageId = `${this.#asked}/${this.#round}`;
    const events = calls.flatMap(({ id: toolCallId, name: toolCallName, arguments: delta }): AgUiEvent[] => {
      this.open.add(toolCallId);
      return [...this.#beginStep(), { type: "TOOL_CALL_CHUNK", toolCallId, toolCallName, parentMessageId, delta }];
    });
    events.push(...this.endStep());
    this.#round += 1;
    return events;
  }
}
