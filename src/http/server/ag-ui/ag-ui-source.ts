import type { RunError } from "../../../agent/run-error.ts";
import type { Approval, RunEvent } from "../../../agent/run-event.ts";
import { type JsonObject, sameJson } from "../../../internal/json.ts";
import { QUIET_MS } from "../../ui/to-ui-message-stream.ts";
import type { SoFar } from "../chat/chat-session.ts";
import type { FrameSource } from "../runs/event-streams.ts";
import type { FedEvent, RunFeed } from "../runs/run-feed.ts";
import { type AgUiEvent, type AgUiInterrupt, PROTOCOL_VERSION } from "./ag-ui-core.ts";
import { askedIdOf, toAgUiMessages } from "./ag-ui-messages.ts";
import { EventWriter } from "./event-writer.ts";

/** What a session says. */
export type Said = Pick<SoFar, "turns" | "variables" | "version">;

/** What an AG-UI stream is made of. */
export interface AgUiSourceInit {
  readonly threadId: string;
  /** What the client calls the run; in the log it may have another name, as when it goes on after an answer. */
  readonly runId: string;
  /** The run that the stream tells of; null for none. */
  readonly feed: RunFeed | null;
  readonly feedRunId: string;
  /** What the session says now. */
  readonly read: () => Promise<Said>;
  readonly readVariables: () => Promise<JsonObject>;
  /** Questions that were answered just now. */
  readonly answered: ReadonlySet<string>;
  /** Called when the reader has left before the end. */
  readonly onLeft: () => void;
}

/**
 * A session and its run as an AG-UI stream: what the log says, as snapshots, and what follows, up to where the run ends or
 * waits for a person's word.
 *
 * A snapshot says how far into the log it goes. What the run tells of that part is not sent again; what it tells live of a
 * round that the snapshot does not have is held until that is sure.
 */
export class AgUiSource implements FrameSource {
  readonly #init: AgUiSourceInit;
  readonly #writer: EventWriter;
  readonly #inner = new Map<string, Approval>();
  #sure: AgUiEvent[] = [];
  #held: AgUiEvent[] = [];
  /** The last entry that the latest snapshot has. */
  #known = -1;
  #variables: JsonObject = {};
  #done = false;
  #quiet = false;
  #left = false;
  #timer: NodeJS.Timeout | undefined;
  #wake: () => void = () => {};

  constructor(init: AgUiSourceInit) {
    this.#init = init;
    this.#writer = new EventWriter(askedIdOf(init.feedRunId));
  }

  /** Writes how the stream begins. */
  begin(said: Said): void {
    const { threadId, runId } = this.#init;
    this.#variables = said.variables;
    this.#sure.push({ type: "RUN_STARTED", threadId, runId, protocolVersion: PROTOCOL_VERSION });
    this.#sure.push({ type: "STATE_SNAPSHOT", snapshot: said.variables });
    this.#restate(said);
  }

  attach(wake: () => void): () => void {
    this.#wake = wake;
    const detach = this.#init.feed?.attach(wake);
    return () => {
      detach?.();
      this.leave();
    };
  }

  /** The reader is gone. */
  leave(): void {
    clearTimeout(this.#timer);
    if (!this.#left && !this.#done) this.#init.onLeft();
    this.#left = true;
  }

  async take(): Promise<string | null> {
    if (this.#done) return null;
    // What makes no event, such as what a snapshot has already, is no reason to wait for more.
    for (let more = true; more && !this.#done; ) {
      const fed = this.#init.feed === null ? null : await this.#init.feed.take();
      for (const one of fed ?? []) await this.#tell(one);
      if (fed === null) await this.#finish({ type: "success" });
      else if (fed.length > 0) this.#rest();
      else if (this.#quiet) await this.#interrupt();
      if ((this.#init.feed?.seen ?? 0) >= this.#known) this.#release();
      more = fed !== null && fed.length > 0 && this.#sure.length === 0;
    }
    const frames = this.#sure.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    this.#sure = [];
    return frames;
  }

  async #tell({ event: told, seq }: FedEvent): Promise<void> {
    if (this.#done) return;
    const event = told as RunEvent;
    if (event.type === "run-finished") return this.#finish({ type: "success" });
    if (event.type === "run-failed") return this.#fail(event.error);
    if (event.type === "approval-required" && event.approval.innerRunId !== undefined) {
      this.#inner.set(event.approval.question, event.approval);
    }
    if (event.type === "approval-settled") this.#inner.delete(event.question);
    const isWhole = event.type === "round-finished" || event.type === "tool-finished";
    this.#held.push(...this.#writer.take(event));
    if (this.#writer.astray) {
      this.#release();
      this.#restate(await this.#init.read());
      this.#writer.astray = false;
    } else if (isWhole && seq <= this.#known) this.#held = [];
    else if (event.type === "tool-finished") await this.#tellState();
  }

  /** Sends all messages anew, in the place of those that the reader has. */
  #restate({ turns, version }: Said): void {
    this.#known = version - 1;
    this.#sure.push({ type: "MESSAGES_SNAPSHOT", messages: toAgUiMessages(turns) });
  }

  async #tellState(): Promise<void> {
    const variables = await this.#init.readVariables();
    const keys = new Set([...Object.keys(this.#variables), ...Object.keys(variables)]);
    const delta = [...keys].flatMap((key) => changeOf(key, this.#variables, variables));
    this.#variables = variables;
    if (delta.length > 0) this.#held.push({ type: "STATE_DELTA", delta });
  }

  #release(): void {
    this.#sure.push(...this.#held);
    this.#held = [];
  }

  async #finish(outcome: Outcome): Promise<void> {
    await this.#tellState();
    this.#held.push(...this.#writer.end());
    const { threadId, runId } = this.#init;
    this.#held.push({ type: "RUN_FINISHED", threadId, runId, outcome });
    this.#release();
    this.#done = true;
  }

  async #fail({ code, message }: RunError): Promise<void> {
    if (code === "ABORTED") return this.#finish({ type: "cancelled" });
    this.#held.push(...this.#writer.end(), { type: "RUN_ERROR", message, ...(code !== null && { code }) });
    this.#release();
    this.#done = true;
  }

  /** Something was told: silence counts from here on, where the run waits. */
  #rest(): void {
    clearTimeout(this.#timer);
    this.#quiet = false;
    if (this.#interrupts().length === 0) return;
    this.#timer = setTimeout(() => {
      this.#quiet = true;
      this.#wake();
    }, QUIET_MS);
  }

  async #interrupt(): Promise<void> {
    const interrupts = this.#interrupts();
    if (interrupts.length > 0) await this.#finish({ type: "interrupt", interrupts });
  }

  #interrupts(): AgUiInterrupt[] {
    const own = this.#init.feed?.questions ?? [];
    const asked = new Map([...this.#inner.values(), ...own].map((one) => [one.question, one]));
    return [...asked.values()].flatMap((one) =>
      this.#init.answered.has(one.question) ? [] : [interruptOf(one, this.#writer.calls.has(one.callId))],
    );
  }
}

type Outcome = Exclude<Extract<AgUiEvent, { type: "RUN_FINISHED" }>["outcome"], undefined>;

/** What an answer to a question looks like, for a front end that makes a form of it. */
const ANSWER_SCHEMA = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"],
  additionalProperties: false,
};

type Question = Pick<Approval, "question" | "callId" | "name" | "arguments" | "effects" | "reach"> & {
  readonly expiresAt?: string;
};

function interruptOf({ question, callId, name, expiresAt, ...about }: Question, isOwn: boolean): AgUiInterrupt {
  return {
    id: question,
    reason: isOwn ? "tool_call" : "confirmation",
    message: `May ${name} run?`,
    ...(isOwn ? { toolCallId: callId } : {}),
    responseSchema: ANSWER_SCHEMA,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    metadata: { name, arguments: about.arguments, effects: about.effects, reach: about.reach },
  };
}

type Patch = Extract<AgUiEvent, { type: "STATE_DELTA" }>["delta"];

/** How a variable changed, as a JSON Patch. */
function changeOf(key: string, before: JsonObject, after: JsonObject): Patch {
  const path = `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  if (!Object.hasOwn(after, key)) return [{ op: "remove", path }];
  const value = after[key];
  return sameJson(before[key], value) && Object.hasOwn(before, key) ? [] : [{ op: "add", path, value }];
}
