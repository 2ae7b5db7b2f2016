import type { UIMessage } from "./ai-sdk.ts";
import type { ToolCall, ToolMessage } from "../../session/message.ts";
import type { SessionTurn } from "../../session/state.ts";
import { answerMessageIdOf, messageIdOf } from "./message-id.ts";
import { inputOf, outcomeOf, partsOf, type UIPart } from "./ui-parts.ts";

/** What of a turn makes a message. */
export type UITurn = Pick<SessionTurn, "turnId" | "role" | "content" | "toolCalls" | "toolCallId" | "isError">;

/** What is known of a session beside its turns. */
export interface UIMessagesOptions {
  /** What its open run asks and nobody has answered: those calls wait for approval. */
  readonly questions?: readonly { readonly question: string; readonly callId: string }[];
}

/**
 * The turns of a session as messages of the AI SDK. What a model says to one message of a person, with its calls and their
 * results, is one message in several steps. Ids are those that the chat routes stream, so that nothing appears twice.
 */
export function toUIMessages(turns: readonly UITurn[], { questions = [] }: UIMessagesOptions = {}): UIMessage[] {
  const messages: UIMessage[] = [];
  const asked = new Map(questions.map(({ callId, question }) => [callId, question]));
  let answer: UIMessage | null = null;
  let answersId: string | null = null;
  for (const [index, turn] of turns.entries()) {
    if (turn.role === "tool") continue;
    if (turn.role === "assistant") {
      if (answer === null) {
        answer = { id: answersId ?? turn.turnId, role: "assistant", parts: [] };
        messages.push(answer);
      }
      answer.parts.push({ type: "step-start" }, ...partsOf(turn.content), ...callParts(turns, index, asked));
      continue;
    }
    messages.push({ id: messageIdOf(turn.turnId), role: turn.role, parts: partsOf(turn.content).map(withoutState) });
    answer = null;
    answersId = turn.role === "user" ? answerMessageIdOf(turn.turnId) : null;
  }
  return messages;
}

/** The calls of a turn, each with its result, which is among the turns before the next answer. */
function callParts(turns: readonly UITurn[], index: number, asked: ReadonlyMap<string, string>): UIPart[] {
  const { toolCalls = [] } = turns[index] as UITurn;
  if (toolCalls.length === 0) return [];
  const results = new Map<string, UITurn>();
  for (let i = index + 1; i < turns.length && turns[i]?.role !== "assistant"; i++) {
    const { toolCallId } = turns[i] as UITurn;
    if (toolCallId !== undefined) results.set(toolCallId, turns[i] as UITurn);
  }
  let waits = false;
  return toolCalls.flatMap((call) => {
    const result = results.get(call.id);
    const question = result === undefined ? asked.get(call.id) : undefined;
    waits ||= question !== undefined;
    // Behind a call that waits, a stream shows only those that wait, too.
    return result === undefined && question === undefined && waits ? [] : [callPart(call, result, question)];
  });
}

function callPart(call: ToolCall, result: UITurn | undefined, question: string | undefined): UIPart {
  const part = { type: `tool-${call.name}`, toolCallId: call.id, input: inputOf(call) } as const;
  if (result === undefined) {
    if (question === undefined) return { ...part, state: "input-available" };
    return { ...part, state: "approval-requested", approval: { id: question } };
  }
  const outcome = outcomeOf(result as Pick<ToolMessage, "content" | "isError">);
  if (outcome.state !== "output-denied") return { ...part, ...outcome };
  const { state, reason } = outcome;
  return { ...part, state, approval: { id: call.id, approved: false, reason } };
}

/** What a person said was never under way. */
function withoutState(part: UIPart): UIPart {
  return part.type === "text" ? { type: "text", text: part.text } : part;
}
