import { createHeader, type EntryDraft, type Message, type SessionStore } from "skein";
import { messageText } from "../message-of.ts";

/** A session like one after weeks of work, with its end. */
export interface Conversation {
  readonly sessionId: string;
  /** The number of nodes in its tree. */
  readonly nodes: number;
  /** Words that only its last turn contains. */
  readonly lastWords: string;
}

const APPEND_ENTRIES = 1000;
/** The messages of one question: the question, the call of a tool, its result, and the answer. */
const QUESTION_MESSAGES = 4;
/** After so many turns there is a side branch with so many nodes. */
const BRANCH_EVERY = 40;
const BRANCH_NODES = 6;
const LABEL_EVERY = 500;
const LONG_EVERY = 100;
const LONG_PARAGRAPHS = 40;

/** Stores a session with the given number of turns on its active path, many side branches and a few labels. */
export async function storeConversation(store: SessionStore, turns: number): Promise<Conversation> {
  const header = createHeader({ cwd: "/project" });
  await store.create(header);
  const lastWords = `These are the last words of ${turns} turns.`;
  let [drafts, nodes]: [EntryDraft[], number] = [[{ type: "session_info", name: `A talk of ${turns} turns` }], 0];
  for (let turn = 0; turn < turns; turn++) {
    const message = turn === turns - 1 ? ({ role: "assistant", content: lastWords } as const) : messageAt(turn);
    drafts.push({ type: "message", id: idOf(turn), message });
    nodes += 1;
    if (turn % BRANCH_EVERY === BRANCH_EVERY - 1) {
      drafts.push(...branchAt(turn));
      nodes += BRANCH_NODES;
    }
    if (turn % LABEL_EVERY === LABEL_EVERY - 1) {
      drafts.push({ type: "label", targetId: idOf(turn), label: `after ${turn + 1} turns` });
    }
    if (drafts.length >= APPEND_ENTRIES || turn === turns - 1) {
      await store.append(header.id, drafts);
      drafts = [];
    }
  }
  return { sessionId: header.id, nodes, lastWords };
}

/** The id of the turn at a position of the active path. */
function idOf(turn: number): string {
  return `turn-${turn}`;
}

/** A branch that starts one question earlier, and the move of the leaf back to the path. */
function branchAt(turn: number): EntryDraft[] {
  const from = turn - QUESTION_MESSAGES;
  const tried = Array.from({ length: BRANCH_NODES }, (_, index): EntryDraft => {
    const message: Message = { role: index % 2 === 0 ? "user" : "assistant", content: messageText(turn + index) };
    return { type: "message", id: `tried-${turn}-${index}`, message };
  });
  return [{ type: "leaf", targetId: idOf(from) }, ...tried, { type: "leaf", targetId: idOf(turn) }];
}

function messageAt(turn: number): Message {
  const text = messageText(turn);
  const call = `call-${turn - (turn % QUESTION_MESSAGES)}`;
  switch (turn % QUESTION_MESSAGES) {
    case 0:
      return { role: "user", content: `Question ${turn}: ${text.slice(0, 160)}` };
    case 1: {
      const given = JSON.stringify({ path: `src/part-${turn}.ts`, from: turn });
      return {
        role: "assistant",
        content: null,
        toolCalls: [{ id: call, name: "read", arguments: given }],
        ...ran(turn),
      };
    }
    case 2:
      return { role: "tool", toolCallId: call, name: "read", content: text };
    default:
      return { role: "assistant", content: answerOf(turn, text), ...ran(turn), stopReason: "stop" };
  }
}

function answerOf(turn: number, text: string): string {
  const [first, second, third] = [text.slice(0, 200), text.slice(200, 340), text.slice(340)];
  const parts = [
    `## Answer ${turn}`,
    first,
    `- **${second.slice(0, 40)}**\n- \`${second.slice(40, 80)}\`\n- ${second.slice(80)}`,
    `\`\`\`ts\nexport function part${turn}(line: string): string {\n  return line.trim();\n}\n\`\`\``,
    `| file | lines |\n| --- | --- |\n| part-${turn}.ts | ${turn} |`,
    third,
  ];
  const isLong = turn % LONG_EVERY === LONG_EVERY - 1;
  if (isLong) for (let more = 0; more < LONG_PARAGRAPHS; more++) parts.push(messageText(turn + more));
  return parts.join("\n\n");
}

function ran(
  turn: number,
): { provider: string; model: string; cost: number } & Pick<Message & { role: "assistant" }, "usage"> {
  const usage = { inputTokens: 900 + (turn % 100), outputTokens: 150, totalTokens: 1050 + (turn % 100) };
  return { provider: "offline", model: "offline", cost: 0.0012, usage };
}
