import fc from "fast-check";
import { expect, test } from "vitest";
import type { RunEvent } from "./run-event.ts";
import { SaidOnce } from "./said-once.ts";

const told = (type: "run-started" | "model-retry" | "events-dropped"): RunEvent => ({ type, runId: "r" }) as RunEvent;
const says = (text: string): RunEvent => ({ type: "text-delta", runId: "r", round: 1, text });
const whole = (content: string): RunEvent => ({
  type: "round-finished",
  runId: "r",
  round: 1,
  message: { role: "assistant", content },
  stopReason: "stop",
});

/** An answer in pieces, of which the stream breaks off, misses some, or begins anew, any number of times. */
const tellings = fc
  .record({
    words: fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 8 }),
    tries: fc.array(fc.record({ upTo: fc.nat(8), missed: fc.nat(20), retries: fc.boolean() }), { maxLength: 4 }),
  })
  .map(({ words, tries }) => {
    const tried = tries.flatMap(({ upTo, missed, retries }) => [
      ...words.slice(0, upTo).map((word, at) => (at === missed ? told("events-dropped") : says(word))),
      told(retries ? "model-retry" : "run-started"),
    ]);
    return { answer: words.join(""), events: [...tried, ...words.map(says), whole(words.join(""))] };
  });

test("a reader has every word of an answer once, however often it breaks off and whatever of it is missed", () => {
  fc.assert(
    fc.property(tellings, tellings, (first, second) => {
      const said = new SaidOnce();
      for (const { answer, events } of [first, second]) {
        const pieces = events.flatMap((event) => said.take(event));
        expect(pieces.map(({ text }) => text).join("")).toBe(answer);
      }
    }),
  );
});

test("an answer that says something else the second time follows whole, from a beginning of its own", () => {
  const said = new SaidOnce();
  const events = [says("One "), told("model-retry"), says("Eins "), whole("Eins zwei.")];
  expect(events.flatMap((event) => said.take(event))).toEqual([
    { kind: "text", text: "One " },
    { kind: "text", text: "Eins zwei.", begins: true },
  ]);
});
