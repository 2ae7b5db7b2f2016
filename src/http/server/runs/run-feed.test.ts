import { expect, test } from "vitest";
import { type FedEvent, writtenFrames } from "./run-feed.ts";

const told = (frame: string): FedEvent => ({ event: { type: "run-started", runId: "r" }, seq: 0, frame });

test("unsent events do not delay later ones, and a stream that its writer has ended is over", async () => {
  const fed = [[told("known")], [told("known"), told("new")], [], [told("last")], [told("late")]];
  const feed = { attach: () => () => {}, take: async () => fed.shift() ?? null, questions: [], seen: 0 };
  const writer = {
    ended: false,
    write(events: readonly FedEvent[] | null): readonly string[] {
      const sent = (events ?? []).map(({ frame }) => frame).filter((frame) => frame !== "known");
      this.ended = sent.includes("last");
      return sent;
    },
  };
  const { take } = writtenFrames(feed, writer);
  expect([await take(), await take(), await take(), await take()]).toEqual([
    ...["data: new\n\n", "", "data: last\n\n", null],
  ]);
});
