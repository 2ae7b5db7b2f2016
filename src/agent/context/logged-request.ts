import { defined } from "../../internal/defined.ts";
import { acceptable, compactionMessage, contextPath, messagesOf } from "../../session/context/context.ts";
import type { Entry } from "../../session/log/entry.ts";
import { rootIdOf } from "../../session/log/header.ts";
import type { Message } from "../../session/message.ts";
import type { SessionTree } from "../../tree/session-tree.ts";
import { promptCacheKey } from "../model/cache-key.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { readSetup, type WholeSetup } from "../persist/run-setup.ts";
import { isCached } from "./cache-warmth.ts";

/**
 * The request that the next turn of a session would send, if the log records all of it and the provider has its prefix in the cache; else
 * null. `path` is the part of the path that models see.
 */
export async function loggedRequest(
  tree: SessionTree,
  path: readonly Entry[],
  model: Model,
): Promise<ModelRequest | null> {
  const last = path.findLastIndex(({ type }) => type === "message" || type === "context_edit" || type === "compaction");
  const answer = path[path.findLastIndex((entry) => entry.type === "message" && entry.message.role === "assistant")];
  const changed = path[last]?.type;
  if (answer?.type !== "message" || answer.message.role !== "assistant" || changed !== "message") return null;
  if (!isCached(answer.message, Date.parse(answer.timestamp), model)) return null;
  const setup = answer.setup === undefined ? null : await wholeSetup(tree, answer.setup);
  if (setup === null) return null;
  const { instructions, tools, thinkingLevel, toolChoice, maxOutputTokens, temperature, stop } = setup;
  const { compaction, entries } = contextPath(path, new Set(tree.head.undone));
  const summary = compaction === null ? [] : [compactionMessage(compaction.summary)];
  const { header } = tree.head;
  return {
    messages: [...instructionMessages(instructions), ...acceptable([...summary, ...entries.flatMap(messagesOf)])],
    ...defined({ tools, thinkingLevel, toolChoice, maxOutputTokens, temperature, stop }),
    cacheKey: promptCacheKey(rootIdOf(header), header.userId),
  };
}

/** The instructions of an agent as messages of a request: none if they are empty, because some providers refuse that. */
export function instructionMessages(instructions: string | undefined): readonly Message[] {
  return instructions === undefined || instructions === "" ? [] : [{ role: "system", content: instructions }];
}

/** The session's last setup; null if the log does not record the whole request. */
async function wholeSetup({ store, head }: SessionTree, id: string): Promise<WholeSetup | null> {
  const setup = (await readSetup(store, head.header, id))?.setup ?? null;
  if (setup === null) return null;
  const { instructionsDigest, providerOptionsDigest, transformed, toolChoice = "auto", output } = setup;
  if (instructionsDigest !== undefined || providerOptionsDigest !== undefined || transformed === true) return null;
  return (toolChoice === "auto" || toolChoice === "none") && output === undefined ? setup : null;
}
