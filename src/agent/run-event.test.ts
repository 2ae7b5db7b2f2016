import { describe, expect, test } from "vitest";
import { usage } from "../../test/sample-log.ts";
import {
  asking,
  callOf,
  calling,
  collectWarnings,
  eventsOf,
  saying,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import type { RunEvent } from "./run-event.ts";
import { runSessionLoop } from "./run-session-loop.ts";

const replies = () => [
  { ...calling(callOf("a", "look")), content: "Let me see.", usage: usage(10, 2), cost: 0.5 },
  saying("Done.", { usage: usage(20, 2) }),
];

describe("the events of a run", () => {
  test("come in the same order to the listener and to readers", async () => {
    const heard: RunEvent[] = [];
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted(replies()),
      tools: [toolOf("look")],
      onEvent: (event) => heard.push(event),
    });
    const session = await run;
    expect(await eventsOf(run)).toEqual(heard);
    const answers = session.transcript.toMessages().filter(({ role }) => role === "assistant");
    const result = session.transcript.toMessages().find(({ role }) => role === "tool");
    const { runId, ...first } = heard[0] as RunEvent;
    expect([first, typeof runId]).toEqual([{ type: "run-started", claim: 0 }, "string"]);
    const steps = heard.slice(1).filter(({ type }) => !type.endsWith("-delta"));
    expect(steps).toEqual(
      [
        { type: "round-started", round: 1 },
        { type: "usage", round: 1, usage: usage(10, 2), cost: 0.5 },
        { type: "round-finished", round: 1, message: answers[0], stopReason: "tool_calls" },
        { type: "tool-started", round: 1, callId: "a", name: "look", arguments: {} },
        { type: "tool-finished", round: 1, callId: "a", message: result },
        { type: "round-started", round: 2 },
        { type: "usage", round: 2, usage: usage(20, 2) },
        { type: "round-finished", round: 2, message: answers[1], stopReason: "stop" },
        { type: "run-finished", truncated: false, usage: usage(30, 4) },
      ].map((event) => ({ ...event, runId })),
    );
    const told = heard.flatMap((event) => (event.type === "text-delta" ? [[event.round, event.text]] : []));
    expect(
      told
        .filter(([round]) => round === 1)
        .map(([, text]) => text)
        .join(""),
    ).toBe("Let me see.");
    expect(
      told
        .filter(([round]) => round === 2)
        .map(([, text]) => text)
        .join(""),
    ).toBe("Done.");
    const delta = heard.findIndex(({ type }) => type === "text-delta");
    expect(heard.findIndex(({ type }) => type === "usage")).toBeGreaterThan(delta);
  });

  test("are frozen, so that no listener can change them for the others", async () => {
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted(replies()),
      tools: [toolOf("look")],
      onEvent: (event) => {
        expect(Object.isFrozen(event)).toBe(true);
        if (event.type === "round-finished") expect(Object.isFrozen(event.message)).toBe(true);
        if (event.type === "tool-finished") expect(Object.isFrozen(event.message)).toBe(true);
      },
    });
    expect((await run).text()).toBe("Done.");
  });

  test("report that a run failed, with its error", async () => {
    const failure = new Error("Gone.");
    const run = runSessionLoop(asking(), someAgent(), { model: scripted([failure]) });
    const events = await eventsOf(run);
    expect(events).toMatchObject([
      { type: "run-started" },
      { type: "round-started", round: 1 },
      { type: "run-failed", error: { code: null, message: "Gone." } },
    ]);
    expect(events.at(-1)).toHaveProperty("error.cause", failure);
  });
});

describe("a listener that fails is reported, and the run continues, if it", () => {
  const hostile = Object.create(null);
  test.each<[string, (event: RunEvent) => void, RegExp]>([
    [
      "throws",
      () => {
        throw new Error("Deaf.");
      },
      /A listener of run .* failed: Deaf\./,
    ],
    ["rejects", () => Promise.reject(new Error("Deaf, later.")) as unknown as void, /failed: Deaf, later\./],
    [
      "throws something that cannot be shown",
      () => {
        throw hostile;
      },
      /failed: Something was thrown/,
    ],
    [
      "returns a thenable that rejects",
      // biome-ignore lint/suspicious/noThenProperty: that is the case.
      () => ({ then: (_ok: unknown, fail: (error: Error) => void) => fail(new Error("Thenable.")) }) as unknown as void,
      /failed: Thenable\./,
    ],
  ])("%s", async (_name, onEvent, message) => {
    const { messages, settled } = collectWarnings();
    const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]), onEvent });
    expect((await run).text()).toBe("Done.");
    await settled();
    expect(messages).toHaveLength((await eventsOf(run)).length);
    expect(messages[0]).toMatch(message);
  });
});
