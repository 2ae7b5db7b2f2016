import type { UIMessage } from "./ai-sdk.ts";
import type { SessionTurn } from "../../session/state/state.ts";
import { answerIdOf, messageIdOf } from "./message-id.ts";
import { callOf, callParts, partsOf, type UICall, type UIPart } from "./ui-parts.ts";

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
  let calls = new Map<string, UICall>();
  let endStep = (): void => {};
  for (const turn of turns) {
    if (turn.role === "tool") {
      const call = calls.get(turn.toolCallId ?? "");
      if (call !== undefined) call.result = turn;
    } else if (turn.role === "assistant") {
      endStep();
      if (answer === null) {
        answer = { id: answersId ?? turn.turnId, role: "assistant", parts: [] };
        messages.push(answer);
      }
      const { parts } = answer;
      const called = (turn.toolCalls ?? []).map((call) => callOf(call, asked.get(call.id)));
      parts.push({ type: "step-start" }, ...partsOf(turn.content));
      calls = new Map(called.map((call) => [call.id, call]));
      // Results may follow what a person said in the middle.
      endStep = () => parts.push(...callParts(called));
    } else {
      const id = messageIdOf(turn.turnId);
      messages.push({ id, role: turn.role, parts: partsOf(turn.content).map(withoutState) });
      answer = null;
      answersId = turn.role === "user" ? answerIdOf(id) : null;
    }
  }
  endStep();
  return messages;
}

/** What a person said was never under way. */
function withoutState(part: UIPart): UIPart {
  return part.type === "text" ? { type: "text", text: part.text } : part;
}
