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

/**
 * The parameters of every request of a run. A tool choice other than `"auto"` and `"none"` applies to the first round
 * only.
 */
export type RequestParameters = Omit<ModelRequest, "messages" | "tools" | "output" | "cacheKey">;

/** How much a run may spend. */
export interface Budget {
  readonly totalTokens?: number;
  readonly cost?: number;
  /** With `"lineage"`, also counts every known operation in the session's lineage (default: this run only). */
  readonly over?: "run" | "lineage";
}

/** The spending at the moment when a budget was exceeded. */
export interface Spending {
  readonly usage: Usage;
  readonly cost: number;
}

/** When and how a run compacts a context that gets too long. */
export interface LoopCompaction {
  readonly settings?: Partial<CompactionSettings>;
  /** The model that writes the summaries, or its name as `provider/id` (default: the run's own). */
  readonly model?: Model | string;
  readonly instructions?: string;
  /** How the model is asked for a summary; see `ask` of `CompactOptions`. */
  readonly ask?: "quoted";
  readonly hooks?: SessionHooks | readonly SessionHooks[];
}

/** Edits that a run makes automatically. */
export interface LoopEdits {
  readonly toolResults: ShortenedResults;
}

/** When a run releases its session while it waits for approval. */
export interface ParkOptions {
  /** How long it waits before it releases the session. */
  readonly afterMs: number;
  /** How long after parking its questions count as denied (default: never). */
  readonly expireMs?: number;
}

/** The answer to a question: whether the call may run, and optionally why not. */
export type ApprovalAnswer = boolean | { readonly approved: boolean; readonly reason?: string };

/** Answers a question in the process that asks it. */
export type OnApproval = (question: Approval) => ApprovalAnswer | Promise<ApprovalAnswer>;

/** Options of every operation that asks a model. */
export interface RunOptions extends RequestParameters {
  /** The model to ask; not needed with an executor. */
  readonly model?: Model;
  /** Replaces model requests and tool calls. */
  readonly executor?: LoopExecutor;
  /**
   * Called with every event; the model must support streaming. An error that it throws is reported, and the run
   * continues.
   */
  readonly onEvent?: (event: RunEvent) => void;
  /** The destination in which each row is stored before the run continues (default: none). */
  readonly persist?: Persist;
  /**
   * How long other processes must wait for the run's session if this process dies or freezes (default 30,000 ms, at
   * least 1,000). The lease is renewed every third of it, and a call starts only if at least a third is left.
   */
  readonly leaseMs?: number;
  /** The handle to record for the sandbox instead of its own id. */
  readonly sandboxHandleId?: string;
  readonly signal?: AbortSignal;
  /** The run's id in the log (default: the id of the resumed run, otherwise a new one). */
  readonly runId?: string;
  /** The time at which the run is stopped with `DEADLINE`, as an ISO time. */
  readonly deadline?: string;
  /** Recorded on every answer as `agent`, and in spans. */
  readonly agentName?: string;
  readonly retry?: RetryOptions;
  readonly telemetry?: TelemetryOptions;
  /** Register sessions in `sessionRegistry` (default true). */
  readonly register?: boolean;
}

/** Options of a run of a session with an agent. */
export interface LoopOptions extends RunOptions {
  readonly tools?: readonly Tool[];
  /** Which workspace tools to offer: all (default), none, or a list of names. */
  readonly builtInTools?: boolean | readonly string[];
  /**
   * Which calls need approval, by the `effects` of their tools; a tool's `needsApproval` asks in addition. By default,
   * calls of built-in tools and of your own need none, and calls of untrusted tools, such as those of MCP servers, do;
   * with `"never"`, these need none either. The values of an agent, a server and an outer run can only make the policy
   * stricter.
   */
  readonly ask?: AskPolicy;
  /**
   * Answers the questions of the run and of the runs inside its tools, one at a time: true lets the call run, false or
   * `{ approved: false, reason }` denies it. If it throws, the run that asked fails with that error.
   */
  readonly onApproval?: OnApproval;
  /**
   * How long a stored run waits for an answer before it parks: it records its questions, releases its session, and
   * continues when it is recovered after the answers. `false`: it waits without limit. Default: until `onApproval`
   * answers; otherwise 30 seconds, or no time if nobody has subscribed to its events. A run that is not stored rejects
   * then with `APPROVAL_NEEDED`. If a run cannot park (inside a tool, in a group, with a sandbox that cannot be
   * reattached), the call is denied instead, unless `park` is given, which says that answers come from another process.
   */
  readonly park?: ParkOptions | false;
  /**
   * The structured output: a schema for the value that the run must end with. The resulting session has it in `output`.
   * Accepts JSON Schema, or a schema of any library that implements Standard Schema and provides JSON Schema.
   */
  readonly output?: ValueSchema;
  /**
   * How many times the model is told that its value is invalid, before the run fails with `OUTPUT_INVALID` (default 2).
   */
  readonly outputRetries?: number;
  /** How many rounds may call tools (default 64). */
  readonly maxToolRounds?: number;
  readonly budget?: Budget;
  /** Called once, when the budget is first exceeded; `"stop"` ends the run. Without it, the run ends. */
  readonly onBudget?: (spent: Spending) => "stop" | "continue" | undefined;
  /** The run compacts automatically if the model declares its context window; false disables this. */
  readonly compaction?: LoopCompaction | false;
  /**
   * Edits that the run makes automatically (default: none): old, large tool results are replaced by their first and
   * last lines when the beginning of the request is not cached anyway. The log keeps the originals, and `undoEdit`
   * brings them back.
   */
  readonly edits?: LoopEdits;
  /**
   * Whether the log gets the text of the agent's instructions (default true). With false it gets a digest, and a recovered run uses the
   * instructions that its agent has at that time.
   */
  readonly recordInstructions?: boolean;
  /**
   * Returns information that changes between requests, such as the date or the open files; null for none. It is called before each
   * request. If the text differs from the last one, it is appended to the log as a message after all others. In the instructions it would
   * change the prefix of every request, so that the provider's prompt cache could not be used.
   */
  readonly reminders?: () => string | null;
  /** Transforms of the messages of each request, applied in order; see `pruneContext`. */
  readonly context?: readonly ContextTransform[];
}

/** The default limit of rounds with tool calls. */
export const MAX_TOOL_ROUNDS_DEFAULT = 64;

const PARAMETERS: KeysOf<RequestParameters> = {
  toolChoice: true,
  thinkingLevel: true,
  temperature: true,
  maxOutputTokens: true,
  stop: true,
  providerOptions: true,
};
/** The option keys of every operation that asks a model. */
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

/** The option keys of a loop. */
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
  recordInstructions: true,
  reminders: true,
  context: true,
};

/** Options of other SDKs, with what to write here instead. */
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
