import { compact as compactTree } from "../../../agent/context/compact.ts";
import { type Entry, type SessionHead, SessionTree } from "../../../index.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";
import { countOption, MODEL_OPTION } from "../../options/option-values.ts";
import { modelFor } from "../../options/session-model.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Compacts a session. */
export const compact: Command = {
  name: "compact",
  summary: "Replace the older part of a session's context by a summary; the log keeps every message.",
  arguments: [SESSION_ARGUMENT],
  options: {
    model: { ...MODEL_OPTION, what: "the model that writes the summary (default: the session's last model)" },
    instructions: { value: "TEXT", what: "what the summary should pay attention to" },
    "keep-recent-tokens": { value: "N", what: "how many tokens at the end are kept unchanged" },
    undo: { what: "undo the last compaction: bring its messages back into the context" },
  },
  examples: [
    {
      line: "skein compact last --model anthropic/claude-sonnet-4-5",
      what: "summarize the latest session with this model",
    },
    { line: "skein compact last --undo", what: "undo that" },
  ],
  json: {
    sessionId: "the session's id",
    entry: "the compaction entry; null if there was nothing to compact, and for --undo",
  },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    const head = await findSession(store, context.positionals[0] as string);
    const tree = await SessionTree.on(store, head.header.id);
    const undoes = context.values["undo"] === true;
    const entry = undoes ? await undo(tree) : await compactNow(tree, head, context);
    if (context.json) context.printJson({ sessionId: tree.id, entry });
    else context.print(undoes ? `The last compaction of session ${tree.id} was undone.` : sentenceOf(tree.id, entry));
    return 0;
  },
};

async function undo(tree: SessionTree): Promise<null> {
  await tree.undoCompaction();
  return null;
}

async function compactNow(
  tree: SessionTree,
  head: SessionHead,
  { values, signal, progress }: CommandContext,
): Promise<Entry | null> {
  const [instructions, keepRecentTokens] = [
    textOption(values, "instructions"),
    countOption(values, "keep-recent-tokens", 0),
  ];
  const model = await modelFor(tree.store, head, textOption(values, "model"));
  progress(`${model.provider}/${model.id} writes the summary`);
  return compactTree(tree, {
    model,
    signal,
    ...(instructions !== undefined && { instructions }),
    ...(keepRecentTokens !== undefined && { settings: { keepRecentTokens } }),
  });
}

function sentenceOf(sessionId: string, entry: Entry | null): string {
  if (entry?.type !== "compaction") return `Session ${sessionId} is short enough; there is nothing to compact.`;
  return `The context of session ${sessionId}, ${entry.tokensBefore} tokens, was compacted to a summary and the latest messages.`;
}
