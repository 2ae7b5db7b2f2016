import { callStateOf } from "../../agent/answer-reducer.ts";
import { checkObjects, checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { messageIdOf, type ShownTurn } from "../shown-turn.ts";
import type { UIMessage } from "./ai-sdk.ts";
import { type BlobUrl, callParts, uiPartsOf } from "./ui-parts.ts";

/** Options for converting a session's turns. */
export interface UIMessagesOptions {
  /** The unanswered questions of its open run: their calls wait for approval. */
  readonly questions?: readonly { readonly question: string; readonly callId: string }[];
  /** The siblings of messages, as `siblingMessages` returns them; each message then has a `UIMessageMetadata`. */
  readonly siblings?: ReadonlyMap<string, readonly string[]>;
  /** The URL of an image or a file whose bytes are stored beside the log (default: the name of its blob, `sha256:…`). */
  readonly blobUrl?: BlobUrl;
}

/** The metadata of a message of a chat. */
export interface UIMessageMetadata {
  readonly skein: {
    /** The entry with which the message begins. */
    readonly entryId: string;
    /** The entries of the messages in its place on all branches, oldest first, this one included. */
    readonly siblings: readonly string[];
  };
}

/**
 * Converts the turns of a session to AI SDK messages. All answers to one user message, with calls and results, become
 * one message with several steps. The ids equal those that the chat routes stream, so nothing appears twice.
 */
export function toUIMessages(turns: readonly ShownTurn[], options: UIMessagesOptions = {}): UIMessage[] {
  checkObjects(turns, "toUIMessages", "a list of turns");
  checkOptionsOf(
    options,
    { questions: true, siblings: true, blobUrl: true } satisfies KeysOf<UIMessagesOptions>,
    "toUIMessages",
  );
  const { questions = [], siblings, blobUrl } = options;
  const files = blobUrl === undefined ? {} : { blobUrl };
  const about = ({ turnId }: ShownTurn): { metadata?: UIMessageMetadata } => {
    if (siblings === undefined) return {};
    return { metadata: { skein: { entryId: turnId, siblings: siblings.get(turnId) ?? [turnId] } } };
  };
  const messages: UIMessage[] = [];
  const asked = new Map(questions.map(({ callId, question }) => [callId, question]));
  let answer: UIMessage | null = null;
  let answersId: string | null = null;
  const results = new Map<string | undefined, ShownTurn>();
  let endStep = (): void => {};
  for (const turn of turns) {
    if (turn.role === "tool") {
      results.set(turn.toolCallId, turn);
    } else if (turn.role === "assistant") {
      endStep();
      results.clear();
      if (answer === null) {
        answer = { id: answersId ?? turn.turnId, role: "assistant", parts: [], ...about(turn) };
        messages.push(answer);
      }
      const { parts } = answer;
      const { toolCalls = [] } = turn;
      parts.push({ type: "step-start" }, ...uiPartsOf(turn.content, { state: "done", ...files }));
      // Results may follow a user message that was sent during a run.
      endStep = () => {
        const calls = toolCalls.map((call) => ({
          ...callStateOf(call, asked.get(call.id)),
          result: results.get(call.id),
        }));
        parts.push(...callParts(calls));
      };
    } else {
      const id = messageIdOf(turn.turnId);
      messages.push({ id, role: turn.role, parts: uiPartsOf(turn.content, files), ...about(turn) });
      answer = null;
      answersId = turn.role === "user" ? answerMessageIdOf(id) : null;
    }
  }
  endStep();
  return messages;
}

/** The id of the answer to a user message; each branch has one. */
export function answerMessageIdOf(messageId: string): string {
  return `${messageId}/answer`;
}
