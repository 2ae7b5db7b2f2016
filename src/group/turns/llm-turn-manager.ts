import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { dropEnd } from "../../internal/trim-text.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import { namedModel } from "../../agent/model/named-model.ts";
import { type RetryOptions, withRetries } from "../../agent/model/retry.ts";
import { untilAborted } from "../../agent/follow-abort.ts";
import { SessionError } from "../../session/errors.ts";
import { textOf } from "../../session/message.ts";
import type { SessionTurn } from "../../session/state/state.ts";
import type { GroupMember, TurnManager } from "./turn-manager.ts";
import { TurnRoster, type WholeView } from "./turn-roster.ts";
import { wordPattern } from "./word-pattern.ts";

/** How many of the latest turns the model sees. */
export const TURNS_SHOWN_MAX = 40;
/** How many characters of each turn the model sees. */
export const TURN_CHARACTERS_SHOWN_MAX = 2000;

/** Options of an `LlmTurnManager`. */
export interface LlmTurnManagerOptions {
  /** Ends the conversation after this number of agent turns (default 10). */
  readonly maxRounds?: number;
  /** Additional instructions for the choice. */
  readonly instructions?: string;
  readonly retry?: RetryOptions;
}

const OPTIONS: KeysOf<LlmTurnManagerOptions> = { maxRounds: true, instructions: true, retry: true };

/**
 * A model chooses the next speaker, or that the conversation ends. It sees the latest turns, private ones included, and
 * answers with a name only. If its answer names no agent, or several, it is asked once more; then the conversation
 * ends.
 */
export class LlmTurnManager extends TurnRoster implements TurnManager {
  readonly #model: Model;
  readonly #instructions: string;
  readonly #retry: RetryOptions;

  constructor(model: Model | string, options: LlmTurnManagerOptions = {}) {
    checkOptionsOf(options, OPTIONS, "LlmTurnManager");
    const { maxRounds = 10, instructions = "", retry = {} } = options;
    super(maxRounds);
    if (typeof instructions !== "string") throw new SessionError("INVALID_OPTION", "The instructions are not a text.");
    this.#model = namedModel(model, "LlmTurnManager");
    this.#instructions = instructions.trim();
    this.#retry = retry;
  }

  protected roundsOf({ moves }: WholeView): number {
    return moves.length;
  }

  protected async choose(
    { turns, agents }: WholeView,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<string | null> {
    return agents.length === 0 ? null : this.#ask(this.#request(turns, agents), agents, signal);
  }

  async #ask(request: ModelRequest, agents: readonly GroupMember[], signal: AbortSignal): Promise<string | null> {
    const names = agents.map(({ name }) => name);
    const first = await this.#complete(request, signal);
    const found = findName(first, names);
    if (found === "nobody") return null;
    if (found !== "unclear") return found.name;
    const again = await this.#complete(askedAgain(request, first, names), signal);
    const second = findName(again, names);
    return typeof second === "string" ? null : second.name;
  }

  async #complete(request: ModelRequest, signal: AbortSignal): Promise<string> {
    const attempt = () => untilAborted(this.#model.complete(request, { signal }), signal);
    const { content } = await withRetries(attempt, this.#retry, signal, () => {});
    return textOf(content);
  }

  #request(turns: readonly SessionTurn[], agents: readonly GroupMember[]): ModelRequest {
    const members = agents.map(({ name, role }) => `- ${name} (${role})`).join("\n");
    const system = [
      "You moderate a conversation between agents. Decide who speaks next.",
      `The agents:\n${members}`,
      this.#instructions,
      'Answer with the name of one agent and nothing else, or with "nobody" when the conversation has come to its end.',
    ];
    const said = turns.flatMap(lineOf).slice(-TURNS_SHOWN_MAX).join("\n\n");
    return {
      messages: [
        { role: "system", content: system.filter((part) => part !== "").join("\n\n") },
        { role: "user", content: `<conversation>\n${said}\n</conversation>\n\nWho speaks next?` },
      ],
    };
  }
}

function askedAgain(request: ModelRequest, answer: string, names: readonly string[]): ModelRequest {
  const said = answer.trim() === "" ? "(nothing)" : answer;
  const reminder = `That does not name one agent. Answer with one of these names and nothing else: ${names.join(", ")}, or nobody.`;
  return {
    ...request,
    messages: [...request.messages, { role: "assistant", content: said }, { role: "user", content: reminder }],
  };
}

/** The text of a turn; nothing for tool results and turns without text. */
function lineOf({ role, agent, content }: SessionTurn): readonly string[] {
  const text = textOf(content).trim();
  if (role === "tool" || text === "") return [];
  const cut = text.length > TURN_CHARACTERS_SHOWN_MAX ? `${text.slice(0, TURN_CHARACTERS_SHOWN_MAX)}…` : text;
  return [`${agent ?? role}: ${cut}`];
}

/** The result of reading the model's choice: a name, nobody, or unclear. */
type NameFound = { readonly name: string } | "nobody" | "unclear";

const NOBODY = ["nobody", "no one", "noone", "none"];

/**
 * Finds the one name in an answer, whatever text surrounds it. An answer that consists of a name is that name; one with
 * several names is unclear.
 */
export function findName(answer: string, names: readonly string[]): NameFound {
  const bare = dropEnd(answer.replace(/^["'`*_[({\s]+/, ""), /["'`*_\])}.!,;:\s]/);
  const exact = names.find((name) => name === bare) ?? names.find((name) => name.toLowerCase() === bare.toLowerCase());
  if (exact !== undefined) return { name: exact };
  const found = new Set<string>();
  let rest = answer;
  // Longest first, removing each found name from the text, so that "Ann" is not found in "Ann Lee".
  for (const name of names.toSorted((a, b) => b.length - a.length)) {
    const without = rest.replace(wordPattern(name, "\\-"), "\0");
    if (without !== rest) found.add(name);
    rest = without;
  }
  const [name] = found;
  if (name !== undefined) return found.size === 1 ? { name } : "unclear";
  return NOBODY.some((word) => answer.search(wordPattern(word)) >= 0) ? "nobody" : "unclear";
}
