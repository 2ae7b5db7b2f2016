import { checkArgument, checkOptionsOf, isObject, type KeysOf } from "../session/check-arguments.ts";
import { SessionError } from "../session/errors.ts";
import { stamped } from "../session/lineage/lineage-scope.ts";
import { type RunInput, requestedInput } from "../session/run-input.ts";
import { operation, Session } from "../session/value/session.ts";
import { rowOf, Transcript } from "../session/value/transcript.ts";
import { checkAgentOptions } from "./check-options.ts";
import { LOOP_HABITS, LOOP_KEYS, type LoopOptions } from "./loop-options.ts";
import type { Model } from "./model/model.ts";
import { createModel } from "./model/model-providers.ts";
import { type WithModelName, withNamedModel } from "./model/named-model.ts";
import { runSessionLoop, type SessionInput } from "./run-session-loop.ts";
import type { OutputSchema, SessionRun } from "./session-run.ts";
import { toolsOf } from "./tools/offer-tools.ts";
import type { Tool } from "./tools/tool.ts";
import { stricterOf } from "./tools/ask-policy.ts";

/** The parts of an agent. Every option of a loop is accepted too, and applies to each run. */
export interface AgentInit
  extends Omit<LoopOptions, "model" | "signal" | "onEvent" | "persist" | "agentName" | "runId" | "deadline"> {
  /** The agent's name, for sessions with several agents; recorded on every answer as `agent`. */
  readonly name?: string;
  /** The instructions. */
  readonly prompt: string;
  /**
   * A model, or the name of one as `provider/id`. A named model is created when a run first needs it; see
   * `createModel`.
   */
  readonly model: Model | string;
  readonly tools?: readonly Tool[];
}

/** A model with instructions and tools, ready to be run. */
export interface Agent {
  readonly name: string | null;
  /**
   * @throws {SessionError} the error of `createModel`, if the agent's model was given by name and cannot be created.
   */
  readonly model: Model;
  /** The agent's tools, if they are known. */
  readonly tools?: readonly Tool[];
  /** The instructions as a session. */
  readonly session: Session;
  /**
   * Answers a session, a run whose result is a session, a text, content parts or messages. Stores nothing unless
   * `persist` is given; `SessionManager.run` stores. Options override the agent's own; of two values of `ask`, the
   * stricter one applies. With `output`, the resulting session has the structured output in `output`.
   */
  run<const S extends OutputSchema = undefined>(
    input: SessionInput | RunInput,
    options?: WithModelName<Partial<LoopOptions>> & { readonly output?: S },
  ): SessionRun<S>;
}

const {
  signal: _signal,
  onEvent: _onEvent,
  persist: _persist,
  agentName: _agentName,
  runId: _runId,
  deadline: _deadline,
  ...KEPT_KEYS
} = LOOP_KEYS;
const AGENT_KEYS: KeysOf<AgentInit> = { ...KEPT_KEYS, name: true, prompt: true };

/**
 * Creates an agent from instructions, a model and tools.
 *
 * @example
 * const agent = createAgent({ prompt: "You answer in one sentence.", model: "openai/gpt-5-mini" });
 * const answer = await agent.run("What is a fork?");
 * console.log(answer.text());
 *
 * @throws {SessionError} `INVALID_OPTION` without a prompt or a model, or for an invalid option; `INVALID_TOOL` for two
 * tools with the same name, built-in tools included.
 */
export function createAgent(init: AgentInit): Agent {
  checkOptionsOf(init, AGENT_KEYS, "createAgent", LOOP_HABITS);
  const { name, prompt, model: ownModel, ...own } = init;
  if (typeof prompt !== "string") throw new SessionError("INVALID_OPTION", "An agent needs a prompt, as a text.");
  const model = modelOf(ownModel);
  checkAgentOptions(own);
  toolsOf(own);
  const session = Session.fromAgentPrompt(prompt);
  return {
    name: name ?? null,
    get model() {
      return model();
    },
    tools: own.tools ?? [],
    session,
    run<const S extends OutputSchema = undefined>(
      input: SessionInput | RunInput,
      given: WithModelName<Partial<LoopOptions>> & { readonly output?: S } = {},
    ): SessionRun<S> {
      checkOptionsOf(given, LOOP_KEYS, "run", LOOP_HABITS);
      const options = withNamedModel<Partial<LoopOptions>>(given, "run");
      const user = isInput(input) ? sessionOfInput(input) : input;
      const named = name === undefined ? {} : { agentName: name };
      const ask = stricterOf(own.ask, options.ask);
      const executor = options.executor ?? own.executor;
      const isNotAsked = options.model !== undefined || (executor !== undefined && typeof ownModel === "string");
      const asked = isNotAsked ? {} : { model: model() };
      const all: LoopOptions = { ...own, ...asked, ...options, ...named, ...(ask && { ask }) };
      return runSessionLoop(user, session, all) as SessionRun as SessionRun<S>;
    },
  };
}

/** Returns a function that returns the model; a named model is created once. */
function modelOf(given: unknown): () => Model {
  let made: Model | null = null;
  if (typeof given === "string" && given !== "") return () => (made ??= createModel(given));
  if (typeof (given as Model | undefined)?.complete === "function") return () => given as Model;
  throw new SessionError("INVALID_OPTION", 'An agent needs a model, or the name of one, such as "openai/gpt-5-mini".');
}

function sessionOfInput(input: RunInput): Session {
  const said = requestedInput(input);
  if ("input" in said) return Session.create({ kind: "user", text: said.input });
  const rows = said.messages.map((message) => rowOf({ message }));
  return Session.of(Transcript.of(rows), { lineage: stamped(operation("leaf_user", "createUserSession", [])) });
}

function isInput(input: SessionInput | RunInput): input is RunInput {
  return typeof input === "string" || Array.isArray(input);
}

/** @throws {SessionError} `INVALID_OPTION` that names the call, unless the value is an agent. */
export function checkIsAgent(agent: unknown, call: string): asserts agent is Agent {
  checkArgument(isObject(agent) && typeof agent.run === "function", agent, call, "an agent, such as createAgent makes");
}

/**
 * Loads the packages of the agents' models. Servers call it at start, so that a missing key or package fails there and
 * not after a run was accepted.
 *
 * @throws {SessionError} `KEY_MISSING` or `DRIVER_MISSING`, which names the variable or the package.
 */
export async function prepareModels(agents: readonly Agent[]): Promise<void> {
  await Promise.all(agents.map(({ model }) => model.prepare?.()));
}
