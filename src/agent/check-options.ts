import { checkKeys, checkOptionsOf, invalidOption, isObject, type KeysOf } from "../session/check-arguments.ts";
import { shouldCompact } from "../session/context/compaction.ts";
import { checkAsk } from "./context/compact.ts";
import { defined } from "../internal/defined.ts";
import { SessionError, show } from "../session/errors.ts";
import { checkName, isName } from "../session/id.ts";
import { bodyProblem } from "../session/log/entry-check.ts";
import { checkCount } from "../stores/complete/valid-arguments.ts";
import type { ShortenedResults } from "./context/result-shortener.ts";
import {
  type Budget,
  type LoopCompaction,
  type LoopEdits,
  type LoopOptions,
  MAX_TOOL_ROUNDS_DEFAULT,
  type ParkOptions,
  type RunOptions,
} from "./loop-options.ts";
import { namedModel } from "./model/named-model.ts";
import type { RetryOptions } from "./model/retry.ts";
import { ANSWER_TOOL, outputSchema } from "./output/run-output.ts";
import type { TelemetryOptions } from "./telemetry.ts";
import { checkAskPolicy } from "./tools/ask-policy.ts";
import { type OfferedTools, offerTools } from "./tools/offer-tools.ts";

/** A shorter lease would be lost during an ordinary pause of the process. */
const LEASE_MS_MIN = 1_000;
const LEASE_MS_MAX = 3_600_000;
/** The longest delay of a timer. */
const PARK_AFTER_MS_MAX = 2 ** 31 - 1;
const PARK_EXPIRE_MS_MAX = 10 * 365 * 24 * 3_600_000;

const OUTPUT_RETRIES_MAX = 20;

const RETRY_LIMITS = {
  attempts: { least: 1, most: 20 },
  baseDelayMs: { least: 0, most: 3_600_000 },
  delayMaxMs: { least: 0, most: 3_600_000 },
} as const;

/**
 * Checks all options of a loop and returns its tools.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_TOOL` for invalid options, `PRICE_UNKNOWN` for a budget in cost
 * on a model without a price.
 */
export function checkLoopOptions(options: LoopOptions): OfferedTools {
  checkRunOptions(options);
  checkLoopSettings(options);
  checkIsPriced(options);
  const offered = offerTools(options);
  checkOutput(options);
  if (options.output !== undefined) checkAnswerTool(offered);
  return offered;
}

/**
 * Checks the options of an agent, before the model is known.
 *
 * @throws {SessionError} `INVALID_OPTION` for invalid options.
 */
export function checkAgentOptions(options: Omit<LoopOptions, "model">): void {
  checkRunSettings(options);
  checkLoopSettings(options);
  checkOutput(options);
}

function checkLoopSettings(options: Omit<LoopOptions, "model">): void {
  const { maxToolRounds = MAX_TOOL_ROUNDS_DEFAULT, onBudget, compaction } = options;
  checkCount(maxToolRounds, "maxToolRounds", 1);
  checkAskPolicy(options.ask);
  checkBudget(options.budget);
  if (onBudget !== undefined && typeof onBudget !== "function") throw invalidOption("onBudget is not a function.");
  if (compaction !== undefined && compaction !== false) {
    if (typeof compaction !== "object" || compaction === null) {
      throw invalidOption("compaction is neither false nor an object of settings.");
    }
    checkKeys(compaction, COMPACTION_KEYS, "compaction");
    if (compaction.model !== undefined)
      checkIsPriced({ ...defined({ budget: options.budget }), model: namedModel(compaction.model, "compaction") });
    // Called with an empty context only to validate the settings.
    shouldCompact(0, 0, compaction.settings);
    checkAsk(compaction.ask, "compaction");
  }
  checkEdits(options.edits);
  checkContext(options.context);
  checkPark(options.park);
  checkOnApproval(options.onApproval);
  checkFlag(options.recordInstructions, "recordInstructions");
  if (options.reminders !== undefined && typeof options.reminders !== "function")
    throw invalidOption("reminders is not a function that returns a text or null.");
}

function checkFlag(flag: unknown, name: string): void {
  if (flag !== undefined && typeof flag !== "boolean")
    throw invalidOption(`${name} is ${show(flag)}, not true or false.`);
}

function checkEdits(edits: LoopEdits | undefined): void {
  if (edits === undefined) return;
  if (!isObject(edits) || !isObject(edits.toolResults))
    throw invalidOption(
      "edits is not an object with toolResults, such as { toolResults: { olderThan: 20, largerThan: 4_000 } }.",
    );
  checkKeys(edits, { toolResults: true } satisfies KeysOf<LoopEdits>, "edits");
  const { toolResults } = edits;
  checkKeys(toolResults, { olderThan: true, largerThan: true } satisfies KeysOf<ShortenedResults>, "edits.toolResults");
  if (toolResults.olderThan !== undefined) checkCount(toolResults.olderThan, "edits.toolResults.olderThan", 0);
  // With a lower limit, the shortened text and its note would be longer than the original.
  if (toolResults.largerThan !== undefined) checkCount(toolResults.largerThan, "edits.toolResults.largerThan", 200);
}

function checkOutput({ output, outputRetries }: Omit<LoopOptions, "model">): void {
  if (outputRetries !== undefined) checkCount(outputRetries, "outputRetries", 0, OUTPUT_RETRIES_MAX);
  if (output !== undefined) outputSchema(output);
}

function checkAnswerTool({ tools }: OfferedTools): void {
  if (!tools.has(ANSWER_TOOL)) return;
  throw new SessionError(
    "INVALID_TOOL",
    `The tool ${ANSWER_TOOL} has the name of the tool through which a model gives the output of a run; rename it.`,
  );
}

/** @throws {SessionError} `INVALID_OPTION` for invalid options. */
export function checkRunOptions(options: RunOptions): void {
  if (typeof options !== "object" || options === null) throw invalidOption("A run takes its options as an object.");
  const { model, executor, onEvent } = options;
  checkExecutor(executor);
  if (executor !== undefined && onEvent !== undefined) {
    throw invalidOption(
      "executor and onEvent exclude each other; combine them with streamingExecutor(model, onEvent).",
    );
  }
  if (executor === undefined && typeof model?.complete !== "function") {
    throw invalidOption('The run has no model; pass one as model, such as "openai/gpt-5-mini", or an executor.');
  }
  if (onEvent !== undefined && typeof onEvent !== "function") throw invalidOption("onEvent is not a function.");
  if (onEvent !== undefined && model?.stream === undefined) {
    throw invalidOption(`${model?.provider}/${model?.id} cannot stream, which onEvent needs; leave onEvent out.`);
  }
  checkRunSettings(options);
}

function checkExecutor(executor: RunOptions["executor"]): void {
  if (executor === undefined || typeof executor?.complete === "function") return;
  throw invalidOption("The executor has no complete function; give it one, or leave the executor out.");
}

function checkRunSettings(options: Omit<RunOptions, "model">): void {
  const { executor, signal, agentName } = options;
  checkExecutor(executor);
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption("signal is not an AbortSignal.");
  if (agentName !== undefined && !isName(agentName))
    throw invalidOption("agentName is not a text of 1 to 512 characters, none of them a control character.");
  checkPersist(options.persist);
  checkLeaseMs(options.leaseMs);
  if (options.runId !== undefined) checkName(options.runId, "a run's");
  checkDeadline(options.deadline);
  checkRetry(options.retry);
  checkProviderOptions(options.providerOptions);
  checkParameters(options);
  if (options.telemetry !== undefined)
    checkOptionsOf(options.telemetry, { contents: true } satisfies KeysOf<TelemetryOptions>, "telemetry");
}

/** The same rules as for the record of what a run sends. */
function checkParameters(options: Omit<RunOptions, "model">): void {
  const { thinkingLevel, temperature, maxOutputTokens, stop, toolChoice } = options;
  const parameters = defined({ thinkingLevel, temperature, maxOutputTokens, stop, toolChoice });
  const problem = bodyProblem({ type: "setup", agent: "agent", ...parameters });
  if (problem !== null) throw invalidOption(`The options of a run are not valid: ${problem}.`);
}

function checkProviderOptions(providerOptions: unknown): void {
  if (providerOptions === undefined) return;
  try {
    if (JSON.stringify(providerOptions) !== undefined) return;
  } catch {
    // A cycle or a bigint.
  }
  throw invalidOption(
    `providerOptions is ${show(providerOptions)}, which is not JSON; give an object of the provider's options.`,
  );
}

function checkContext(transforms: unknown): void {
  if (transforms === undefined) return;
  if (Array.isArray(transforms) && transforms.every((transform) => typeof transform === "function")) return;
  throw invalidOption("context is not a list of functions that make messages out of messages.");
}

function checkPersist(persist: unknown): void {
  const named = typeof persist === "object" ? persist !== null : typeof persist === "string" && persist !== "";
  if (persist === undefined || typeof persist === "boolean" || named) return;
  throw invalidOption(
    `persist is ${show(persist)}; give true, a path, a store, a tree, or a store with a sessionId or fork: true.`,
  );
}

/** @throws {SessionError} `INVALID_OPTION` for a lease that is too short or too long. */
export function checkLeaseMs(leaseMs: unknown): void {
  if (leaseMs !== undefined) checkCount(leaseMs, "leaseMs", LEASE_MS_MIN, LEASE_MS_MAX);
}

/** @throws {SessionError} `INVALID_OPTION` for an invalid time. */
export function checkDeadline(deadline: unknown): void {
  if (deadline === undefined || (typeof deadline === "string" && !Number.isNaN(Date.parse(deadline)))) return;
  throw invalidOption(`deadline is ${show(deadline)}; give a time as ISO 8601, as new Date().toISOString() does.`);
}

/** @throws {SessionError} `INVALID_OPTION` unless it is a function or undefined. */
export function checkOnApproval(onApproval: unknown): void {
  if (onApproval === undefined || typeof onApproval === "function") return;
  throw invalidOption(`onApproval is ${show(onApproval)}; give a function that returns whether the call may run.`);
}

/** @throws {SessionError} `INVALID_OPTION` for invalid times. */
export function checkPark(park: LoopOptions["park"]): void {
  if (park === undefined || park === false) return;
  checkOptionsOf(park, { afterMs: true, expireMs: true } satisfies KeysOf<ParkOptions>, "park");
  checkCount(park?.afterMs, "park.afterMs", 0, PARK_AFTER_MS_MAX);
  if (park.expireMs !== undefined) checkCount(park.expireMs, "park.expireMs", 1, PARK_EXPIRE_MS_MAX);
}

const COMPACTION_KEYS: KeysOf<LoopCompaction> = {
  settings: true,
  model: true,
  instructions: true,
  ask: true,
  hooks: true,
};
const BUDGET_KEYS: KeysOf<Budget> = { totalTokens: true, cost: true, over: true };
const RETRY_KEYS: KeysOf<RetryOptions> = { attempts: true, baseDelayMs: true, delayMaxMs: true };

function checkRetry(retry: RunOptions["retry"] = {}): void {
  checkOptionsOf(retry, RETRY_KEYS, "retry");
  for (const field of ["attempts", "baseDelayMs", "delayMaxMs"] as const) {
    const { least, most } = RETRY_LIMITS[field];
    if (retry?.[field] !== undefined) checkCount(retry[field], `retry.${field}`, least, most);
  }
}

function checkBudget(budget: LoopOptions["budget"]): void {
  if (budget === undefined) return;
  checkOptionsOf(budget, BUDGET_KEYS, "budget");
  for (const field of ["totalTokens", "cost"] as const) {
    const limit = budget?.[field];
    if (limit === undefined || (Number.isFinite(limit) && limit >= 0)) continue;
    throw invalidOption(`The budget's ${field} is ${show(limit)}; give a number of 0 or more.`);
  }
  const over = budget?.over;
  if (over !== undefined && over !== "run" && over !== "lineage") {
    throw invalidOption(`A budget is counted over "run" or "lineage", not over ${show(over)}.`);
  }
}

/** A budget in cost could never be reached if no answer has a cost. */
function checkIsPriced({ budget, model, executor }: Pick<LoopOptions, "budget" | "model" | "executor">): void {
  if (budget?.cost === undefined || executor !== undefined || model?.reportsCost !== false) return;
  const name = show(`${model.provider}/${model.id}`);
  throw new SessionError(
    "PRICE_UNKNOWN",
    `The run has a budget in cost, but ${name} has no price; register one with registerPrices or SKEIN_PRICES, or limit totalTokens.`,
  );
}
