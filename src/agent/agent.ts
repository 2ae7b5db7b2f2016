import { SessionError } from "../session/errors.ts";
import type { Content } from "../session/message.ts";
import { Session } from "../session/value/session.ts";
import type { LoopOptions } from "./loop-options.ts";
import type { Model } from "./model/model.ts";
import { runSessionLoop, type SessionInput } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";
import type { Tool } from "./tools/tool.ts";
import { checkUnasked, stricterOf } from "./tools/unasked.ts";

/** What an agent is made of. Everything else that a loop takes can be given too, and holds for every run. */
export interface AgentInit
  extends Omit<LoopOptions, "signal" | "onEvent" | "persist" | "agentName" | "runId" | "deadline"> {
  /** What it is called where several speak; goes on every answer as `agent`. */
  readonly name?: string;
  /** Its instructions. */
  readonly prompt: string;
  readonly model: Model;
  readonly tools?: readonly Tool[];
}

/** A model with instructions and tools, ready to be run. */
export interface Agent {
  readonly name: string | null;
  readonly model: Model;
  /** What it can call, where that is known. */
  readonly tools?: readonly Tool[];
  /** The instructions as a session. */
  readonly session: Session;
  /**
   * Answers a session, a run that will come to one, or a text. Options given here go before the agent's own; of two
   * words for `unasked`, the stricter one holds.
   */
  run(input: SessionInput | Content, options?: Partial<LoopOptions>): SessionRun;
}

/**
 * Makes an agent of instructions, a model and tools.
 *
 * @example
 * const agent = createAgent({ prompt: "You answer in one sentence.", model: createModel("openai/gpt-5-mini") });
 * const answer = await agent.run("What is a fork?");
 * console.log(answer.text());
 *
 * @throws {SessionError} `INVALID_OPTION` without a prompt or a model, or for no word of `unasked`.
 */
export function createAgent(init: AgentInit): Agent {
  const { name, prompt, ...own } = init;
  if (typeof prompt !== "string") throw new SessionError("INVALID_OPTION", "An agent needs a prompt, as a text.");
  if (typeof own.model?.complete !== "function") throw new SessionError("INVALID_OPTION", "An agent needs a model.");
  checkUnasked(own.unasked);
  const session = Session.fromAgentPrompt(prompt);
  return {
    name: name ?? null,
    model: own.model,
    tools: own.tools ?? [],
    session,
    run(input, options = {}) {
      const user = isContent(input) ? Session.create({ kind: "user", text: input }) : input;
      const named = name === undefined ? {} : { agentName: name };
      const unasked = stricterOf(own.unasked, options.unasked);
      return runSessionLoop(user, session, { ...own, ...options, ...named, ...(unasked && { unasked }) });
    },
  };
}

function isContent(input: SessionInput | Content): input is Content {
  return typeof input === "string" || Array.isArray(input);
}
