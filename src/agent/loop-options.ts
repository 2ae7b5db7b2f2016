import type { CompactionSettings } from "../session/context/compaction.ts";
import type { SessionHooks } from "../session/context/hooks.ts";
import type { Usage } from "../session/usage.ts";
import type { ContextTransform } from "./context/context-transform.ts";
import type { LoopExecutor } from "./model/loop-executor.ts";
import type { Model, ModelRequest } from "./model/model.ts";
import type { RetryOptions } from "./model/retry.ts";
import type { RunEvent } from "./run-event.ts";
import type { Persist } from "./persist/run-sink.ts";
import type { TelemetryOptions } from "./telemetry.ts";
import type { Tool } from "./tools/tool.ts";
import type { Unasked } from "./tools/unasked.ts";

/** What goes with every request of a run. A tool choice other than `"auto"` and `"none"` holds for the first round only. */
export type RequestParameters = Omit<ModelRequest, "messages" | "tools">;

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

/** When a run lets go of its session while it waits for a person's word. */
export interface ParkOptions {
  /** How long it waits with the session in hand. */
  readonly afterMs: number;
  /** From when on its questions count as denied (default: 7 days after it parked). */
  readonly expireMs?: number;
}

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
   * Which calls run without a person's word, by the `effects` of their tools; `needsApproval` of a tool asks all the same.
   * Left out, all calls of built-in tools and your own do, and no call of a tool that nobody vouched for, as those of MCP
   * servers; `"all"` covers these too. An agent's own word, a server's and that of a run around this one can only make it
   * stricter.
   */
  readonly unasked?: Unasked;
  /**
   * Lets a kept run park while it waits for approval and nothing else is under way: it puts on record what it asks, lets go
   * of its session, and goes on when it is resumed after the answer (default: it waits). Not inside of a tool or a group.
   */
  readonly park?: ParkOptions;
  /** How many rounds may call tools (default 64). */
  readonly maxToolRounds?: number;
  readonly budget?: Budget;
  /** Called once, when the budget is first crossed; `"stop"` ends the run there. Without it, a crossed budget ends the run. */
  readonly onBudget?: (spent: Spending) => "stop" | "continue" | undefined;
  /** Room is made by itself when the model says how long its context may be; false turns that off. */
  readonly compaction?: LoopCompaction | false;
  /** Make the messages of each request out of those that would be sent, one after the other; see `pruneContext`. */
  readonly context?: readonly ContextTransform[];
}

/** The most rounds with tool calls, where a caller gives no number. */
export const MAX_TOOL_ROUNDS_DEFAULT = 64;
