import fc from "fast-check";
import { expect, test } from "vitest";
import type { WireRunEvent } from "../../wire.ts";
import { EventParser, type ParsedEvent } from "../../client/event-parser.ts";
import { type EventLimits, RunEvents } from "./run-events.ts";

/** What happens in a run: `d` a delta, `r` the end of a round, `o` anything else that is durable. */
const story = fc.array(fc.constantFrom("d", "d", "d", "r", "o"), { minLength: 1, maxLength: 60 });
const roomy: EventLimits = { framesMax: 1000, charactersMax: 1_000_000 };

test("who leaves after any event and rejoins gets exactly the rest", () => {
  fc.assert(
    fc.property(story, (letters) => {
      const events = filled(letters, roomy);
      const whole = readAll(events, null);
      expect(whole.map(({ data }) => data)).toEqual(letters.map((_, index) => JSON.stringify(eventOf(letters, index))));
      for (const [index, { id }] of whole.entries()) expect(readAll(events, id)).toEqual(whole.slice(index + 1));
    }),
  );
});

test("numbers durable events, and deltas since the last of them", () => {
  const ids = readAll(filled(["o", "d", "d", "r", "d", "o"], roomy), null).map(({ id }) => id);
  expect(ids).toEqual(["1.0", "1.1", "1.2", "2.0", "2.1", "3.0"]);
});

test("with little room, who rejoins gets exactly the rest or is told that it is gone, and who is new hears how much is missing", () => {
  const limits = fc.record({
    framesMax: fc.integer({ min: 2, max: 12 }),
    charactersMax: fc.integer({ min: 50, max: 900 }),
  });
  fc.assert(
    fc.property(story, limits, (letters, limit) => {
      const whole = readAll(filled(letters, roomy), null);
      const events = filled(letters, limit);
      expect(events.characters).toBeLessThanOrEqual(Math.max(limit.charactersMax, lastFrame(whole)));
      let counted = 0;
      for (const { type, data } of readAll(events, null)) {
        counted += type === "events-dropped" ? (JSON.parse(data ?? "") as { count: number }).count : 1;
      }
      expect(counted).toBe(whole.length);
      for (const [index, { id }] of whole.entries()) {
        const rest = attempt(() => readAll(events, id));
        if (rest !== "EVENT_GONE") expect(rest).toEqual(whole.slice(index + 1));
      }
      expect(readAll(events, whole.at(-1)?.id ?? null)).toEqual([]);
    }),
  );
});

test("deltas of rounds that are over give way before anything durable does, and the latest stay", () => {
  const letters = [..."oddddddddddddddrodddddd"];
  const events = filled(letters, { framesMax: 20, charactersMax: 1_000_000 });
  const kept = readAll(events, null).map(({ id, type }) => (type === "events-dropped" ? type : id));
  expect(kept.slice(0, 4)).toEqual(["1.0", "events-dropped", "2.0", "3.0"]);
  expect(attempt(() => readAll(events, "1.3"))).toBe("EVENT_GONE");
  expect(readAll(events, "3.0").map(({ id }) => id)).toEqual(["3.1", "3.2", "3.3", "3.4", "3.5", "3.6"]);
});

test.for(["4.0", "2.3", "1.9", "9007199254740993.0", "-1.0", "1", "", "1.0.0", "x"])(
  "refuses %j, an id that no event has",
  (id) => {
    const events = filled(["o", "d", "d", "r", "d", "d", "o"], roomy);
    expect(attempt(() => readAll(events, id))).toBe("EVENT_ID_UNKNOWN");
  },
);

test("a reader that is slower than the run is told what it missed, and goes on", () => {
  const events = new RunEvents("r", { framesMax: 4, charactersMax: 1_000_000 });
  const letters = [..."odddrodddrodddr"];
  const source = events.read(null);
  for (const index of [0, 1]) events.add(eventOf(letters, index));
  const parser = new EventParser();
  const got = parser.push(source?.take() as string);
  for (let index = 2; index < letters.length; index++) events.add(eventOf(letters, index));
  got.push(...parser.push(source?.take() as string));
  expect(got.map(({ type }) => type).slice(0, 3)).toEqual(["compaction", "text-delta", "events-dropped"]);
  expect(JSON.parse(got[2]?.data ?? "")).toEqual({
    type: "events-dropped",
    count: expect.any(Number),
    runId: "r",
  });
  expect(got.at(-1)).toMatchObject({ id: "6.0", type: "round-finished" });
});

function filled(letters: readonly string[], limits: EventLimits): RunEvents {
  const events = new RunEvents("r", limits);
  for (const index of letters.keys()) events.add(eventOf(letters, index));
  events.end();
  return events;
}

function eventOf(letters: readonly string[], index: number): WireRunEvent {
  if (letters[index] === "d") return { type: "text-delta", round: 1, text: `${index}\n`, runId: "r" };
  const type = letters[index] === "r" ? "round-finished" : "compaction";
  return { type, round: 1, summary: `${index}` } as unknown as WireRunEvent;
}

function readAll(events: RunEvents, lastEventId: string | null): ParsedEvent[] {
  const source = events.read(lastEventId);
  const parser = new EventParser();
  const found: ParsedEvent[] = [];
  for (let frames = source?.take() ?? null; frames !== null; frames = source?.take() ?? null) {
    found.push(...parser.push(frames as string));
  }
  return found;
}

function lastFrame(whole: readonly ParsedEvent[]): number {
  const { id, type, data } = whole.at(-1) as ParsedEvent;
  return `id: ${id}\nevent: ${type}\ndata: ${data}\n\n`.length;
}

function attempt<T>(act: () => T): T | string {
  try {
    return act();
  } catch (error) {
    return (error as { code: string }).code;
  }
}
