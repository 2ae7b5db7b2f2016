import { expect, test } from "vitest";
import { isCached, isFromModel } from "./cache-warmth.ts";

const usage = { inputTokens: 10, outputTokens: 1, totalTokens: 11, cacheReadTokens: 9 };
const model = (id: string) => ({ provider: "p", id, complete: () => Promise.reject(new Error("not asked")) });

test("an answer is from a model if it names that model or a dated version of it, and not a longer name", () => {
  const from = (name: string | undefined, id: string): boolean =>
    isFromModel({ role: "assistant", content: "", ...(name !== undefined && { model: name }) }, { id });
  expect(from("gpt-5.2-2026-01-01", "gpt-5.2")).toBe(true);
  expect(from("claude-opus-5", "claude-opus-5-20260101")).toBe(true);
  expect(from(undefined, "gpt-5.2")).toBe(true);
  expect(from("gpt-5.2", "gpt-5")).toBe(false);
  expect(from("gpt-5.2-codex", "gpt-5.2")).toBe(false);
});

test("the request of another model's answer is not in the cache, though that model's name begins with this one's", () => {
  const answer = { role: "assistant", content: "", model: "gpt-5.2", usage } as const;
  expect([isCached(answer, Date.now(), model("gpt-5.2")), isCached(answer, Date.now(), model("gpt-5"))]).toEqual([
    true,
    false,
  ]);
});
