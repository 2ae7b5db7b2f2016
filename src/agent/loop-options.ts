import type { Habits, KeysOf } from "../session/check-arguments.ts";
import type { CompactionSettings } from "../session/context/compaction.ts";
import type { SessionHooks } from "../session/context/hooks.ts";
import type { Usage } from "../session/usage.ts";
import type { ContextTransform } from "./context/context-transform.ts";
import type { ShortenedResults } from "./context/result-shortener.ts";
import type { LoopExecutor } from "./model/loop-executor.ts";
import type { Model, ModelRequest } from "./model/model.ts";
import type { RetryOptions } from "./model/retry.ts";
import type { RunEvent } from "./run-event.ts";
import type { Approval } from "../session/log/run-event.ts";
import type { Persist } from "./persist/persist-option.ts";
import type { ValueSchema } from "./schema/value-schema.ts";
import type { TelemetryOptions } from "./telemetry.ts";
import type { Tool } from "./tools/tool.ts";
import type { AskPolicy } from "./tools/ask-policy.ts";

/** What goes with every request of a run. A tool choice other than `"auto"` and `"none"` holds for the first round only. */
export type RequestParameters = Omit<ModelRequest, "messages" | "tools" | "output" | "cacheKey">;

/** How much a run may spend. */
export interface Budget {
  readonly totalTokens?: number;
  readonly cost?: number;
  /** Count what led here too: every operation in the session's lineage that is still known (default: this run). */
  readonly over?: "run" | "lineage";
}

/** What was spent when a budget was crossed. */
export interface Spending {
  readonly usage: Usage;
  readonly cost: number;
}

/** When and how a run makes room in a context that gets too long. */
export interface LoopCompaction {
  readonly settings?: Partial<CompactionSettings>;
  /** The model that writes the summaries (default: the run's own). */
  readonly model?: Model;
  readonly instructions?: string;
  readonly hooks?: SessionHooks | readonly SessionHooks[];
}

/** Edits that a run makes by itself. */
export interface LoopEdits {
  readonly toolResults: ShortenedResults;
}

/** When a run lets go of its session while it waits for a person's word. */
export interface ParkOptions {
  /** How long it waits with the session in hand. */
  readonly afterMs: number;
  /** How long after it parked its questions count as denied (default: never). */
  readonly expireMs?: number;
}

/** What is said to a question: whether the call may run, and why not. */
export type ApprovalAnswer = boolean | { readonly approved: boolean; readonly reason?: string };

/** Answers a question in the process that asks it. */
export type OnApproval = (question: Approval) => ApprovalAnswer | Promise<ApprovalAnswer>;

/** What every operation that asks a model takes. */
export interface RunOptions extends RequestParameters {
  /** The model to ask; not needed with an executor. */
  readonly model?: Model;
  /** Replaces completion and the running of tools. */
  readonly executor?: LoopExecutor;
  /** Told of everything as it happens; the model must be able to stream. One that throws is reported, and the run goes on. */
  readonly onEvent?: (event: RunEvent) => void;
  /** Where every row is kept before the run goes on (default: nowhere). */
  readonly persist?: Persist;
  /**
   * How long the run's session stays another's for everyone else when this process dies or freezes (default 30,000 ms, at
   * least 1,000). The lease is renewed at each third of it, and a call starts only while a third is left.
   */
  readonly leaseMs?: number;
  /** What to record as the sandbox's handle instead of its own. */
  readonly sandboxHandleId?: string;
  readonly signal?: AbortSignal;
  /** The id that the log has the run under (default: that of the run which was resumed, else a new one). */
  readonly runId?: string;
  /** When the run is stopped at the latest with `DEADLINE`, as an ISO time. */
  readonly deadline?: string;
  /** Goes on every answer as `agent`, and into spans. */
  readonly agentName?: string;
  readonly retry?: RetryOptions;
  readonly telemetry?: TelemetryOptions;
  /** Make the sessions known to `sessionRegistry` (default true). */
  readonly register?: boolean;
}

/** How a session is run through an agent. */
export interface LoopOptions extends RunOptions {
  readonly tools?: readonly Tool[];
  /** The workspace tools to offer: all (default), none, or these. */
  readonly builtInTools?: boolean | readonly string[];
  /**
   * Which calls need approval, by the `effects` of their tools; a tool's `needsApproval` asks in addition. Left out, calls of
   * built-in tools and of your own need none, and calls of tools that nobody vouched for, as those of MCP servers, do; with
   * `"never"`, these need none either. The values of an agent, a server and an outer run can only make it stricter.
   */
  readonly ask?: AskPolicy;
  /**
   * Answers the questions of the run and of the runs inside its tools, one at a time: true lets the call run, false or
   * `{ approved: false, reason }` denies it. If it throws, the run that asked fails with what was thrown.
   */
  readonly onApproval?: OnApproval;
  /**
   * How long a kept run waits for an answer before it parks: it records its questions, releases its session, and goes on when
   * it is recovered after the answers. False: it waits for ever. Default: until `onApproval` answers, else 30 seconds, or no
   * time if nobody has subscribed to its events. A run that is not kept rejects then with `APPROVAL_NEEDED`. Where a run
   * cannot park (inside a tool, in a group, with a sandbox that cannot be found again), the call is denied then, unless
   * `park` is given: that says that someone answers from elsewhere.
   */
  readonly park?: ParkOptions | false;
  /**
   * The value that the run is to end with, checked: `output` of the session that it comes to. JSON Schema, or a schema of any
   * library that follows Standard Schema and gives JSON Schema.
   */
  readonly output?: ValueSchema;
  /** How often the model is told that its value does not fit, before the run fails with `OUTPUT_INVALID` (default 2). */
  readonly outputRetries?: number;
  /** How many rounds may call tools (default 64). */
  readonly maxToolRounds?: number;
  readonly budget?: Budget;
  /** Called once, when the budget is first crossed; `"stop"` ends the run there. Without it, a crossed budget ends the run. */
  readonly onBudget?: (spent: Spending) => "stop" | "continue" | undefined;
  /** Room is made by itself when the model says how long its context may be; false turns that off. */
  readonly compaction?: LoopCompaction | false;
  /**
   * Edits that the run makes by itself (default: none): old, large tool results are replaced by their first and last lines, when
   * no cache has the beginning of the request anyway. The log keeps them, and `undoEdit` brings them back.
   */
  readonly edits?: LoopEdits;
  /** Make the messages of each request out of those that would be sent, one after the other; see `pruneContext`. */
  readonly context?: readonly ContextTransform[];
}

/** The most rounds with tool calls, where a caller gives no number. */
export const MAX_TOOL_ROUNDS_DEFAULT = 64;

const PARAMETERS: KeysOf<RequestParameters> = {
  toolChoice: true,
  thinkingLevel: true,
  temperature: true,
  maxOutputTokens: true,
  stop: true,
  providerOptions: true,
};
/** The keys of the options that every operation takes which asks a model. */
export const RUN_KEYS: KeysOf<RunOptions> = {
  ...PARAMETERS,
  model: true,
  executor: true,
  onEvent: true,
  persist: true,
  leaseMs: true,
  sandboxHandleId: true,
  signal: true,
  runId: true,
  deadline: true,
  agentName: true,
  retry: true,
  telemetry: true,
  register: true,
};

/** The keys of the options of a loop. */
export const LOOP_KEYS: KeysOf<LoopOptions> = {
  ...RUN_KEYS,
  tools: true,
  builtInTools: true,
  ask: true,
  park: true,
  onApproval: true,
  output: true,
  outputRetries: true,
  maxToolRounds: true,
  budget: true,
  onBudget: true,
  compaction: true,
  edits: true,
  context: true,
};

/** Options of other SDKs, with what to write here. */
export const LOOP_HABITS: Habits = {
  instructions: "the instructions of an agent are its prompt",
  system: "the instructions of an agent are its prompt",
  systemPrompt: "the instructions of an agent are its prompt",
  maxSteps: "the most rounds that call tools are maxToolRounds",
  maxTurns: "the most rounds that call tools are maxToolRounds",
  stopWhen: "the most rounds that call tools are maxToolRounds",
  maxTokens: "it is called maxOutputTokens",
  max_tokens: "it is called maxOutputTokens",
  abortSignal: "it is called signal",
  responseFormat: "the schema of the value that a run ends with is output",
  response_format: "the schema of the value that a run ends with is output",
  outputType: "the schema of the value that a run ends with is output",
  handoffs: "several agents share a session in a GroupSession of skein/group",
  memory: "a manager keeps what was said: (await openManager()).run(agent, input)",
  checkpointer: "a manager keeps what was said: (await openManager()).run(agent, input)",
  messages: "messages are the input of a run: agent.run(messages)",
};
