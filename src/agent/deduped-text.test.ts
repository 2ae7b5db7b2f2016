import fc from "fast-check";
import { expect, test } from "vitest";
import type { RunEvent } from "./run-event.ts";
import { DedupedText } from "./deduped-text.ts";

const event = (type: "run-started" | "model-retry" | "events-dropped"): RunEvent => ({ type, runId: "r" }) as RunEvent;
const delta = (text: string): RunEvent => ({ type: "text-delta", runId: "r", round: 1, text });
const finished = (content: string): RunEvent => ({
  type: "round-finished",
  runId: "r",
  round: 1,
  message: { role: "assistant", content },
  stopReason: "stop",
});

/** The events of an answer whose stream is cut, drops events and starts again, any number of times. */
const streams = fc
  .record({
    words: fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 8 }),
    tries: fc.array(fc.record({ upTo: fc.nat(8), missed: fc.nat(20), retries: fc.boolean() }), { maxLength: 4 }),
  })
  .map(({ words, tries }) => {
    const tried = tries.flatMap(({ upTo, missed, retries }) => [
      ...words.slice(0, upTo).map((word, at) => (at === missed ? event("events-dropped") : delta(word))),
      event(retries ? "model-retry" : "run-started"),
    ]);
    return { answer: words.join(""), events: [...tried, ...words.map(delta), finished(words.join(""))] };
  });

test("returns each character of an answer once, even if its stream is interrupted or events are dropped", () => {
  fc.assert(
    fc.property(streams, streams, (first, second) => {
      const text = new DedupedText();
      for (const { answer, events } of [first, second]) {
        const pieces = events.flatMap((each) => text.take(each));
        expect(pieces.map(({ text }) => text).join("")).toBe(answer);
      }
    }),
  );
});

test("returns an answer whole, as a new beginning, if its second attempt has another text", () => {
  const text = new DedupedText();
  const events = [delta("One "), event("model-retry"), delta("Eins "), finished("Eins zwei.")];
  expect(events.flatMap((each) => text.take(each))).toEqual([
    { kind: "text", text: "One " },
    { kind: "text", text: "Eins zwei.", begins: true },
  ]);
});
