import { context, type Histogram, metrics, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { usage } from "../../test/sample-log.ts";
import { asking, callOf, calling, saying, someAgent, toolOf } from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { SandboxError } from "../session/sandbox/sandbox.ts";
import { createAgent } from "./agent.ts";
import { ModelError } from "./model/model-error.ts";
import { runSessionCompress } from "./run-session-compress.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import { GEN_AI } from "./telemetry.ts";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

/** The histograms of the configured meter, by name. */
const made: string[] = [];
const recorded: { name: string; value: number; attributes: unknown }[] = [];

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  const meter = metrics.getMeterProvider().getMeter("none");
  const counting = Object.create(meter) as typeof meter;
  counting.createHistogram = (name) => {
    made.push(name);
    return { record: (value, attributes) => void recorded.push({ name, value, attributes }) } as Histogram;
  };
  metrics.setGlobalMeterProvider({ getMeter: () => counting });
});

afterAll(async () => {
  await provider.shutdown();
  trace.disable();
  context.disable();
  metrics.disable();
});

beforeEach(() => exporter.reset());

/** The spans that have ended, each as its name with those below it. */
type Tree = { readonly [name: string]: readonly Tree[] };
function treesBelow(parentId: string | undefined, spans: readonly ReadableSpan[]): Tree[] {
  return spans
    .filter((span) => span.parentSpanContext?.spanId === parentId)
    .sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
    .map((span) => ({ [span.name]: treesBelow(span.spanContext().spanId, spans) }));
}
const spanTrees = (): Tree[] => treesBelow(undefined, exporter.getFinishedSpans());
const spanNamed = (name: string): ReadableSpan =>
  exporter.getFinishedSpans().find((span) => span.name === name) as ReadableSpan;

const SECRET = "rosebud";
const look = toolOf("look", () => SECRET);
const replies = () => [
  {
    ...calling(callOf("c1", "look", { word: SECRET })),
    content: SECRET,
    usage: { ...usage(10, 2), cacheReadTokens: 4, cacheWriteTokens: 3 },
  },
  saying(SECRET, { usage: usage(20, 2), model: "scripted-2" }),
];

describe("the spans of a run", () => {
  test("are one for the run, with a child for each request and each tool call", async () => {
    await runSessionLoop(asking(), someAgent(), { model: scripted(replies()), tools: [look], agentName: "Ada" });
    expect(spanTrees()).toEqual([
      { "invoke_agent Ada": [{ "chat scripted": [] }, { "execute_tool look": [] }, { "chat scripted": [] }] },
    ]);
  });

  test("have the names of the conventions, and numbers", async () => {
    const session = await runSessionLoop(asking(), someAgent(), {
      model: scripted(replies()),
      tools: [look],
      agentName: "Ada",
      temperature: 0.5,
      maxOutputTokens: 9,
    });
    expect(spanNamed("invoke_agent Ada").attributes).toEqual({
      [GEN_AI.operation]: "invoke_agent",
      [GEN_AI.conversation]: session.id,
      [GEN_AI.agentName]: "Ada",
    });
    expect(spanNamed("chat scripted").attributes).toEqual({
      [GEN_AI.operation]: "chat",
      [GEN_AI.provider]: "scripted",
      [GEN_AI.requestModel]: "scripted",
      [GEN_AI.responseModel]: "scripted",
      [GEN_AI.conversation]: session.id,
      [GEN_AI.requestTemperature]: 0.5,
      [GEN_AI.requestMaxTokens]: 9,
      [GEN_AI.finishReasons]: ["tool_calls"],
      [GEN_AI.inputTokens]: 10,
      [GEN_AI.outputTokens]: 2,
      [GEN_AI.cacheReadTokens]: 4,
      [GEN_AI.cacheWriteTokens]: 3,
    });
    expect(spanNamed("execute_tool look").attributes).toEqual({
      [GEN_AI.operation]: "execute_tool",
      [GEN_AI.toolName]: "look",
      [GEN_AI.toolCallId]: "c1",
      [GEN_AI.toolType]: "function",
    });
    const models = exporter.getFinishedSpans().map((span) => span.attributes[GEN_AI.responseModel]);
    expect(models).toContain("scripted-2");
  });

  test("contain no message text by default", async () => {
    const user = asking(SECRET);
    const told = () =>
      JSON.stringify(
        exporter
          .getFinishedSpans()
          .map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
      );
    const fail = toolOf("fail", () => ({ content: JSON.stringify({ error_kind: SECRET }), isError: true }));
    const failing = scripted([calling(callOf("f", "fail")), new Error(SECRET)]);
    await runSessionLoop(user, someAgent(SECRET), { model: scripted(replies()), tools: [look] });
    await expect(
      runSessionLoop(user, someAgent(SECRET), { model: failing, tools: [fail] }).synchronize(),
    ).rejects.toThrow();
    await runSessionCompress(user, someAgent(SECRET), { model: scripted([SECRET]) });
    expect(exporter.getFinishedSpans().length).toBeGreaterThan(7);
    expect(told()).not.toContain(SECRET);
    exporter.reset();
    await runSessionLoop(user, someAgent(), {
      model: scripted(replies()),
      tools: [look],
      telemetry: { contents: true },
    });
    const chat = spanNamed("chat scripted").attributes;
    expect(chat[GEN_AI.inputMessages]).toContain(SECRET);
    expect(chat[GEN_AI.outputMessages]).toContain(SECRET);
    expect(spanNamed("execute_tool look").attributes).toMatchObject({
      [GEN_AI.toolArguments]: JSON.stringify({ word: SECRET }),
      [GEN_AI.toolResult]: JSON.stringify(SECRET),
    });
  });

  test("have the kind of an error of a retried request, a tool and the run", async () => {
    const busy = new ModelError("overloaded", "Busy.", { provider: "x" });
    const gone = new ModelError("authentication", "No.", { provider: "x" });
    const fail = toolOf("fail", () => Promise.reject(new SandboxError("file_not_found", "No file.")));
    const model = scripted([busy, calling(callOf("f", "fail")), gone]);
    await expect(
      runSessionLoop(asking(), someAgent(), { model, tools: [fail], retry: { baseDelayMs: 0 } }).synchronize(),
    ).rejects.toBe(gone);
    const errors = exporter
      .getFinishedSpans()
      .map((span) => [span.name, span.attributes[GEN_AI.errorType], span.status.code]);
    expect(errors).toEqual([
      ["chat scripted", "overloaded", SpanStatusCode.ERROR],
      ["chat scripted", undefined, SpanStatusCode.UNSET],
      ["execute_tool fail", "file_not_found", SpanStatusCode.ERROR],
      ["chat scripted", "authentication", SpanStatusCode.ERROR],
      ["invoke_agent", "authentication", SpanStatusCode.ERROR],
    ]);
    exporter.reset();
    const run = runSessionLoop(asking(), someAgent(), { model: scripted([() => new Promise<string>(() => {})]) });
    setImmediate(() => run.abort());
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED" });
    expect(spanNamed("invoke_agent").attributes[GEN_AI.errorType]).toBe("ABORTED");
  });

  test("of a malformed answer end, too", async () => {
    const model = scripted([{ role: "user", content: "x" } as never]);
    await expect(runSessionLoop(asking(), someAgent(), { model }).synchronize()).rejects.toMatchObject({
      kind: "malformed",
    });
    expect(exporter.getFinishedSpans().map((span) => span.attributes[GEN_AI.errorType])).toEqual([
      "malformed",
      "malformed",
    ]);
  });

  test("are children of the caller's span, and those of a sub-agent children of its tool's span", async () => {
    const helper = createAgent({ name: "helper", prompt: "Help.", model: scripted(["Helped."]) });
    const delegate = toolOf("delegate", async () => (await helper.run("Help.")).text());
    const model = scripted([calling(callOf("d", "delegate")), "Done."]);
    const outer = trace.getTracer("test").startSpan("request");
    await context.with(trace.setSpan(context.active(), outer), () =>
      runSessionLoop(asking(), someAgent(), { model, tools: [delegate] }).synchronize(),
    );
    outer.end();
    expect(spanTrees()).toEqual([
      {
        request: [
          {
            invoke_agent: [
              { "chat scripted": [] },
              { "execute_tool delegate": [{ "invoke_agent helper": [{ "chat scripted": [] }] }] },
              { "chat scripted": [] },
            ],
          },
        ],
      },
    ]);
  });
});

test("the metrics of many runs use the same histograms", async () => {
  recorded.length = 0;
  const run = () => runSessionLoop(asking(), someAgent(), { model: scripted(replies()), tools: [look] }).synchronize();
  await run();
  await run();
  expect([...made].sort()).toEqual([GEN_AI.durationMetric, GEN_AI.tokenUsageMetric].sort());
  const tokens = recorded.filter(({ name }) => name === GEN_AI.tokenUsageMetric);
  expect(tokens.map(({ value }) => value)).toEqual([10, 2, 20, 2, 10, 2, 20, 2]);
  expect(tokens[0]?.attributes).toEqual({
    [GEN_AI.operation]: "chat",
    [GEN_AI.provider]: "scripted",
    [GEN_AI.requestModel]: "scripted",
    [GEN_AI.tokenType]: "input",
  });
  const durations = recorded.filter(({ name }) => name === GEN_AI.durationMetric);
  expect(durations.every(({ value }) => value >= 0)).toBe(true);
  expect(durations.map(({ attributes }) => (attributes as Record<string, string>)[GEN_AI.operation]).sort()).toEqual(
    ["chat", "chat", "chat", "chat", "execute_tool", "execute_tool", "invoke_agent", "invoke_agent"].sort(),
  );
});
