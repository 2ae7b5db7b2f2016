import type { ContextPartView } from "skein/client";
import { expect, test } from "vitest";
import { droppedParts, percent, sharesByRole, tokensBeyondParts, tokensOfParts } from "./context-share.ts";

const part = (entryId: string | null, role: "user" | "system", tokens: number): ContextPartView => ({
  entryId,
  tokens,
  message: { role, content: "" },
});
const parts = [part("a", "user", 10), part(null, "system", 30), part("b", "user", 40)];

test("sums up the shares of all messages of a role", () => {
  expect(sharesByRole({ parts, tokens: 80 })).toEqual([
    { role: "system", count: 1, tokens: 30, share: 0.375 },
    { role: "user", count: 2, tokens: 50, share: 0.625 },
  ]);
});

test("returns shares of 0 for a context without tokens", () => {
  expect(sharesByRole({ parts: [part("a", "user", 0)], tokens: 0 })[0]?.share).toBe(0);
});

test("counts the parts before the first one that a compaction keeps", () => {
  const plan = { tokensBefore: 80, droppedEntries: 1, keptEntries: 1 };
  expect(droppedParts({ parts }, { ...plan, firstKeptEntryId: "b" })).toBe(2);
  expect(droppedParts({ parts }, { ...plan, firstKeptEntryId: "not a message" })).toBe(0);
  expect(droppedParts({ parts }, null)).toBe(0);
});

test("formats a share with the digits that it needs", () => {
  expect([0, 0.0001, 0.034, 0.5, 1].map(percent)).toEqual(["0.0 %", "< 0.1 %", "3.4 %", "50 %", "100 %"]);
});

test("the shares of the roles and the rest add up to the size of the context, also if the provider counts fewer tokens", () => {
  for (const tokens of [250, 80, 42]) {
    const context = { parts, tokens };
    const shown = sharesByRole(context).reduce((sum, share) => sum + share.tokens, 0);
    expect(shown).toBe(tokensOfParts(context));
    expect(shown + tokensBeyondParts(context)).toBe(tokens);
  }
  expect(tokensBeyondParts({ parts, tokens: 250 })).toBe(170);
  expect(sharesByRole({ parts, tokens: 160 }).map(({ share }) => share)).toEqual([0.1875, 0.3125]);
});
