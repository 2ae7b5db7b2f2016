import type { CompactionPreview, ContextView } from "skein/client";
import type { Message } from "../../../src/session/message.ts";

/** The share of a context that the messages of one role take. */
export interface RoleShare {
  readonly role: Message["role"];
  readonly count: number;
  readonly tokens: number;
  /** The fraction of the whole context, from 0 to 1. */
  readonly share: number;
}

const ROLES: readonly Message["role"][] = ["system", "user", "assistant", "tool"];

/** The estimated tokens of the messages. The total of the context may be counted by the provider, and differ. */
export function tokensOfParts({ parts }: Pick<ContextView, "parts">): number {
  return parts.reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * The tokens of a context beyond its messages: instructions, tools, and the difference between the provider's count and
 * our estimate. Negative if the provider counted less than our estimate.
 */
export function tokensBeyondParts(context: Pick<ContextView, "parts" | "tokens">): number {
  return context.tokens - tokensOfParts(context);
}

/** The whole that shares refer to. */
export function wholeOf(context: Pick<ContextView, "parts" | "tokens">): number {
  return Math.max(context.tokens, tokensOfParts(context));
}

/** The share of each role; roles without messages are left out. */
export function sharesByRole(context: Pick<ContextView, "parts" | "tokens">): readonly RoleShare[] {
  const all = wholeOf(context);
  return ROLES.flatMap((role) => {
    const parts = context.parts.filter(({ message }) => message.role === role);
    const tokens = tokensOfParts({ parts });
    return parts.length === 0 ? [] : [{ role, count: parts.length, tokens, share: all === 0 ? 0 : tokens / all }];
  });
}

/** How many of the first parts a compaction would summarize; 0 if unknown. */
export function droppedParts(context: Pick<ContextView, "parts">, plan: CompactionPreview["plan"]): number {
  if (plan === null) return 0;
  return Math.max(
    0,
    context.parts.findIndex(({ entryId }) => entryId === plan.firstKeptEntryId),
  );
}

/** A share as a percentage. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}
