import { SessionError, show } from "../session/errors.ts";
import type { AssistantMessage } from "../session/message.ts";
import type { GroupAnswer } from "./group-agent.ts";
import { isEmpty } from "./is-empty.ts";

/** What an agent's answer comes to. */
export type ReadAnswer =
  | { readonly kind: "spoke"; readonly message: AssistantMessage }
  | { readonly kind: "passed"; readonly message: AssistantMessage | null }
  | { readonly kind: "refused"; readonly error: unknown };

/**
 * What an agent said, whatever form it said it in.
 *
 * @throws {SessionError} `INVALID_VALUE` for anything that is no answer.
 */
export function readAnswer(agentName: string, answer: GroupAnswer): ReadAnswer {
  if (answer === null || answer === undefined) return { kind: "passed", message: null };
  if (typeof answer === "string") return spokeOrPassed({ role: "assistant", content: answer });
  if (typeof answer === "object" && "ok" in answer && answer.ok === false) {
    return { kind: "refused", error: answer.error };
  }
  if (typeof answer !== "object" || !("content" in answer)) {
    throw new SessionError(
      "INVALID_VALUE",
      `Agent ${show(agentName)} answered with ${show(answer)}; return a text, { content } or { ok: false, error }.`,
    );
  }
  const { content, usage, cost, provider, model, metadata } = answer;
  return spokeOrPassed({
    role: "assistant",
    content,
    ...(usage === undefined ? {} : { usage }),
    ...(cost === undefined ? {} : { cost }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(metadata === undefined ? {} : { metadata }),
  });
}

function spokeOrPassed(message: AssistantMessage): ReadAnswer {
  const { content } = message;
  // Anything else is for the store to refuse, which says what is wrong with it.
  const readable = content === null || typeof content === "string" || Array.isArray(content);
  return { kind: readable && isEmpty(message) ? "passed" : "spoke", message };
}
