import { expect, test } from "vitest";
import { type FedEvent, framesOf } from "./run-feed.ts";

const told = (frame: string): FedEvent => ({ event: { type: "run-started", runId: "r" }, seq: 0, frame });

test("what is not sent on is no reason to wait for more, and what the writer ends is over", async () => {
  const fed = [[told("known")], [told("known"), told("new")], [], [told("late")]];
  const feed = { attach: () => () => {}, take: async () => fed.shift() ?? null };
  const write = (events: readonly FedEvent[]): string | null => {
    const sent = events.filter(({ frame }) => frame !== "known").map(({ frame }) => frame);
    return sent.includes("late") ? null : sent.join("");
  };
  const { take } = framesOf(feed, write);
  expect([await take(), await take(), await take(), await take()]).toEqual(["new", "", null, null]);
});
