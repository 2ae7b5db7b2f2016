import { type AnswerChange, AnswerReducer } from "../../../agent/answer-reducer.ts";
import type { RunError } from "../../../session/log/run-event.ts";
import type { RunEvent } from "../../../agent/run-event.ts";
import type { Approval } from "../../../session/log/run-event.ts";
import type { TextPiece } from "../../../agent/deduped-text.ts";
import { type JsonObject, sameJson } from "../../../internal/json.ts";
import { mountedAt } from "../../handler-of.ts";
import { messageIdOfRun } from "../../shown-turn.ts";
import type { BlobUrl } from "../../ui/ui-parts.ts";
import type { RouteCall } from "../route.ts";
import { blobPath } from "../routes/blob-routes.ts";
import type { FedEvent, RunWriter, WriterFeed } from "../runs/run-feed.ts";
import { readSoFar, type SoFar } from "../runs/so-far.ts";
import type { ServerServices } from "../server-services.ts";
import { type AgUiEvent, type Interrupt, PROTOCOL_VERSION } from "./ag-ui-core.ts";
import { sent, toAgUiMessages } from "./ag-ui-messages.ts";
import type { RunInput } from "./run-input.ts";

/** The run of a stream, and the messages before it. */
export interface AskedStream {
  /** Another run id that the client uses after an answer; null for none. */
  readonly runId: string | null;
  readonly said: SoFar;
  /** The questions that the request has just answered. */
  readonly answered?: readonly string[];
}

type Finished = Extract<AgUiEvent, { type: "RUN_FINISHED" }>;

/**
 * Writes a session and its run as an AG-UI stream: snapshots of the log, followed by events until the run ends or waits
 * for approval. Texts and calls have the ids of `toAgUiMessages` and are sent as chunk events, which need no explicit
 * start and end.
 *
 * A snapshot covers the log up to a position; recorded events before it are not sent again. Live events of a round are
 * held until it is certain that the snapshot does not contain the round.
 */
export class AgUiWriter implements RunWriter {
  readonly #services: ServerServices;
  readonly #call: RouteCall<unknown, RunInput>;
  /** The id of the message that requested the run. */
  readonly #asked: string;
  readonly #blobUrl: BlobUrl;
  readonly #reducer: AnswerReducer;
  #sure: AgUiEvent[];
  #held: AgUiEvent[] = [];
  /** The position of the last entry in the latest snapshot. */
  #known = -1;
  #variables: JsonObject;
  #round = 0;
  #inStep = false;
  /** The kinds of text in the present round. */
  readonly #kinds = new Set<TextPiece["kind"]>();
  /** The written text differs from the log: all messages must be sent again. */
  #astray = false;
  ended = false;

  constructor(
    services: ServerServices,
    call: RouteCall<unknown, RunInput>,
    { runId, said, answered = [] }: AskedStream,
  ) {
    this.#services = services;
    this.#call = call;
    this.#asked = messageIdOfRun(runId ?? "");
    const base = mountedAt(call.request) ?? "/agui";
    this.#blobUrl = (blob, mediaType) => blobPath(base, call.body.threadId, blob, mediaType);
    this.#reducer = new AnswerReducer({ answered, canDiscard: true });
    this.#variables = said.variables;
    this.#sure = [
      { type: "RUN_STARTED", ...this.#names, protocolVersion: PROTOCOL_VERSION },
      { type: "STATE_SNAPSHOT", snapshot: this.#variables },
    ];
    this.#restate(said);
  }

  async write(fed: readonly FedEvent[] | null, { questions, seen }: WriterFeed): Promise<string[]> {
    for (const one of fed ?? []) if (!this.ended) await this.#take(one);
    const interrupts = this.#reducer.waitsFor(questions).map(interruptOf);
    if (fed === null) await this.#finish({ outcome: { type: "success" } });
    else if (interrupts.length > 0) await this.#finish({ outcome: { type: "interrupt", interrupts } });
    if (seen >= this.#known) this.#release();
    return this.#sure.splice(0).map((event) => JSON.stringify(event));
  }

  async #take({ event, seq }: FedEvent): Promise<void> {
    for (const change of this.#reducer.take(event as RunEvent)) {
      if (change.type === "finished") await this.#finish({ outcome: { type: "success" }, result: change.output });
      else if (change.type === "cancelled") await this.#finish({ outcome: { type: "cancelled" } });
      else if (change.type === "failed") await this.#end(failed(change.error));
      else this.#held.push(...this.#write(change));
    }
    if (this.#astray) {
      this.#release();
      this.#restate(await readSoFar(this.#services, this.#names.threadId, this.#call.caller));
      this.#astray = false;
    } else if (event.type === "round-finished" || event.type === "tool-finished") {
      if (seq <= this.#known) this.#held = [];
      else await this.#writeState();
    }
  }

  /** Sends a snapshot of all messages, which replaces those that the reader has. */
  #restate({ turns, version }: SoFar): void {
    this.#known = version - 1;
    this.#sure.push({ type: "MESSAGES_SNAPSHOT", messages: toAgUiMessages(turns, this.#blobUrl) });
  }

  async #writeState(): Promise<void> {
    const options = { ...this.#call.as, turns: false, checkpoint: false };
    const snapshot = (await this.#services.manager.getState(this.#names.threadId, options))?.variables ?? {};
    if (!sameJson(snapshot, this.#variables)) this.#held.push({ type: "STATE_SNAPSHOT", snapshot });
    this.#variables = snapshot;
  }

  #release(): void {
    this.#sure.push(...this.#held.splice(0));
  }

  get #names(): Pick<Finished, "threadId" | "runId"> {
    const { threadId, runId } = this.#call.body;
    return { threadId, runId };
  }

  #finish(how: Pick<Finished, "outcome" | "result">): Promise<void> {
    return this.#end({ type: "RUN_FINISHED", ...this.#names, ...how });
  }

  async #end(event: AgUiEvent): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    await this.#writeState();
    this.#held.push(...this.#endStep(), event);
    this.#release();
  }

  #write(change: AnswerChange): AgUiEvent[] {
    switch (change.type) {
      case "step-started":
        this.#round = change.round;
        this.#inStep = true;
        return [{ type: "STEP_STARTED", stepName: `round ${change.round}` }];
      case "text":
        return [this.#writeText(change)];
      case "step-discarded":
        this.#astray = true;
        return this.#endStep();
      case "answer-finished": {
        const calls = (change.message.toolCalls ?? []).map(
          ({ id: toolCallId, name: toolCallName, arguments: delta }) => {
            return { type: "TOOL_CALL_CHUNK", toolCallId, toolCallName, parentMessageId: this.#id, delta } as const;
          },
        );
        return [...calls, ...this.#endStep()];
      }
      case "call": {
        const { id: toolCallId, result, inner } = change.call;
        if (result === undefined || inner === true) return [];
        const messageId = `${this.#id}/${toolCallId}`;
        return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, content: sent(result.content, this.#blobUrl) }];
      }
      default:
        return [];
    }
  }

  /** The id of the present round's answer. */
  get #id(): string {
    return `${this.#asked}/${this.#round}`;
  }

  #writeText({ kind, text: delta, begins }: TextPiece): AgUiEvent {
    // The text repeats what the reader has, or starts a new part; only the log tells which.
    this.#astray ||= begins === true && this.#kinds.has(kind);
    this.#kinds.add(kind);
    if (kind === "text") return { type: "TEXT_MESSAGE_CHUNK", messageId: this.#id, role: "assistant", delta };
    return { type: "REASONING_MESSAGE_CHUNK", messageId: `${this.#id}/thought`, delta };
  }

  #endStep(): AgUiEvent[] {
    this.#kinds.clear();
    if (!this.#inStep) return [];
    this.#inStep = false;
    return [{ type: "STEP_FINISHED", stepName: `round ${this.#round}` }];
  }
}

/** The JSON Schema of an answer to a question, from which a front end can generate a form. */
const ANSWER_SCHEMA = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"],
  additionalProperties: false,
};

function failed({ code, message }: RunError): AgUiEvent {
  return { type: "RUN_ERROR", message, ...(code !== null && { code }) };
}

function interruptOf(asked: Omit<Approval, "following"> & { readonly expiresAt?: string }): Interrupt {
  const { question: id, callId, name, arguments: input, effects, reach, innerRunId, expiresAt } = asked;
  return {
    ...{ id, message: `May ${name} run?`, responseSchema: ANSWER_SCHEMA },
    ...(innerRunId === undefined ? { reason: "tool_call", toolCallId: callId } : { reason: "confirmation" }),
    ...(expiresAt !== undefined && { expiresAt }),
    metadata: { name, arguments: input, effects, reach },
  };
}
