import type { CompactionPreview, ContextView } from "skein/client";
import type { Message } from "../../../src/session/message.ts";

/** What the messages of one role take of a context. */
export interface RoleShare {
  readonly role: Message["role"];
  readonly count: number;
  readonly tokens: number;
  /** Of the whole context, from 0 to 1. */
  readonly share: number;
}

const ROLES: readonly Message["role"][] = ["system", "user", "assistant", "tool"];

/** What the messages take, each by our own count; the whole context may be counted by the provider, and differ. */
export function tokensOfParts({ parts }: Pick<ContextView, "parts">): number {
  return parts.reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * What a context takes beyond its messages: instructions, tools, and what the provider counts otherwise than we do. Below
 * 0 where the provider counted less than our estimate of the messages.
 */
export function tokensBeyondParts(context: Pick<ContextView, "parts" | "tokens">): number {
  return context.tokens - tokensOfParts(context);
}

/** What shares are shares of. */
export function wholeOf(context: Pick<ContextView, "parts" | "tokens">): number {
  return Math.max(context.tokens, tokensOfParts(context));
}

/** What each role takes of a context; roles that say nothing are left out. */
export function sharesByRole(context: Pick<ContextView, "parts" | "tokens">): readonly RoleShare[] {
  const all = wholeOf(context);
  return ROLES.flatMap((role) => {
    const parts = context.parts.filter(({ message }) => message.role === role);
    const tokens = tokensOfParts({ parts });
    return parts.length === 0 ? [] : [{ role, count: parts.length, tokens, share: all === 0 ? 0 : tokens / all }];
  });
}

/** How many parts, from the first, a compaction would put into its summary; 0 where that cannot be told. */
export function droppedParts(context: Pick<ContextView, "parts">, plan: CompactionPreview["plan"]): number {
  if (plan === null) return 0;
  return Math.max(
    0,
    context.parts.findIndex(({ entryId }) => entryId === plan.firstKeptEntryId),
  );
}

/** A share of something as a reader expects it. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}
