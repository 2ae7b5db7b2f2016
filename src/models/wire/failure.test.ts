import { describe, expect, test } from "vitest";
import { inspect } from "node:util";
import { collect, openModelServer, type Replay, wireFixture } from "../../../test/model-server.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import { ModelError, type ModelFailure } from "../../agent/model/model-error.ts";
import { anthropic } from "../anthropic/anthropic.ts";
import { openai } from "../openai/openai.ts";

const KEY = "sk-secret-0123456789";
const request: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
const makers = {
  openai: (baseURL: string) => openai("gpt-x", { apiKey: KEY, baseURL }),
  anthropic: (baseURL: string) => anthropic("claude-x", { apiKey: KEY, baseURL }),
} as const;
type Provider = keyof typeof makers;
const providers = Object.keys(makers) as Provider[];

async function failureOf(work: Promise<unknown>): Promise<ModelError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ModelError);
  return error as ModelError;
}

/** The failure of a request, with and without streaming; both must be equal, after one request each. */
async function failureFor(provider: Provider, replay: Replay): Promise<ModelError> {
  await using server = await openModelServer(replay);
  const model = makers[provider](server.url);
  const whole = await failureOf(model.complete(request));
  const streamed = await failureOf(collect(model.stream?.(request)));
  expect(server.asked).toHaveLength(2);
  expect(streamed.kind).toBe(whole.kind);
  expect(whole.provider).toBe(provider);
  expect(whole.message).toMatch(/[.!?…]$/);
  return whole;
}

const errorBody = (provider: Provider, type: string, message: string, code: string | null = null): string =>
  JSON.stringify(
    provider === "openai"
      ? { error: { message, type, param: null, code } }
      : { type: "error", error: { type, message }, request_id: "req_1" },
  );

const statuses: [status: number, type: string, message: string, kind: ModelFailure, retryable: boolean][] = [
  [429, "rate_limit_error", "Slow down", "rate_limit", true],
  [529, "overloaded_error", "Overloaded", "overloaded", true],
  [500, "api_error", "Internal server error", "server", true],
  [503, "service_unavailable", "Try later", "server", true],
  [408, "timeout_error", "Too slow", "timeout", true],
  [401, "authentication_error", "Bad key", "authentication", false],
  [403, "permission_error", "Not yours", "authentication", false],
  [404, "not_found_error", "No such model", "invalid_request", false],
  [400, "invalid_request_error", "max_tokens: 99 > 9, the maximum number of output tokens", "invalid_request", false],
  [413, "request_too_large", "Request exceeds the maximum size", "context_overflow", false],
];

describe.for(providers)("a failure of %s", (provider) => {
  test.for(statuses)("with status %i and type %s (%s) is of kind %s", async ([status, type, message, kind, again]) => {
    const failure = await failureFor(provider, { status, body: errorBody(provider, type, message) });
    expect(failure).toMatchObject({ code: "MODEL_FAILED", kind, status, retryable: again, retryAfterMs: null });
    expect(failure.message).toContain(message);
  });

  test("with a Retry-After has it in milliseconds", async () => {
    const at = async (headers: Record<string, string>) =>
      (await failureFor(provider, { status: 429, headers, body: errorBody(provider, "rate_limit_error", "wait") }))
        .retryAfterMs;
    expect(await at({ "retry-after": "7" })).toBe(7000);
    expect(await at({ "retry-after": "7", "retry-after-ms": "250.5" })).toBe(250.5);
    expect(await at({ "retry-after": "soon" })).toBeNull();
    expect(await at({ "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" })).toBe(0);
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
    const wait = (await at({ "retry-after": inAnHour })) ?? 0;
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(3_600_000);
  });

  test("of an address without a server is a connection error", async () => {
    const closed = await openModelServer({});
    await closed[Symbol.asyncDispose]();
    const failure = await failureOf(makers[provider](closed.url).complete(request));
    expect(failure).toMatchObject({ kind: "connection", status: null, retryable: true });
    expect(failure.message).toContain("ECONNREFUSED");
  });

  test("of a connection that breaks before the answer is a connection error", async () => {
    expect((await failureFor(provider, { after: "break" })).kind).toBe("connection");
  });

  test("of an answer that is not JSON is of kind malformed", async () => {
    await using server = await openModelServer({ body: '{"half":' });
    expect((await failureOf(makers[provider](server.url).complete(request))).kind).toBe("malformed");
  });

  test("of an answer of another form is of kind malformed", async () => {
    await using server = await openModelServer({ body: '{"hello":"world"}' }, { body: "hello" });
    const model = makers[provider](server.url);
    expect((await failureOf(model.complete(request))).kind).toBe("malformed");
    expect((await failureOf(model.complete(request))).kind).toBe("malformed");
  });

  test("never contains the key, even if the provider repeats it", async () => {
    const failure = await failureFor(provider, {
      status: 401,
      body: errorBody(provider, "authentication_error", `Incorrect key provided: ${KEY}`),
    });
    expect(failure.message).toContain("Incorrect key provided: [key]");
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain(KEY);
  });

  test("keeps the client's error as its cause", async () => {
    const failure = await failureFor(provider, { status: 500, body: errorBody(provider, "api_error", "Oops") });
    expect(failure.cause).toMatchObject({ status: 500 });
  });
});

describe("a context that overflows", () => {
  test.for([
    [
      "openai",
      "invalid_request_error",
      "This model's maximum context length is 128000 tokens.",
      "context_length_exceeded",
    ],
    ["openai", "invalid_request_error", "Your input exceeds the context window of this model.", null],
    ["anthropic", "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum", null],
    ["anthropic", "invalid_request_error", "input length and `max_tokens` exceed context limit: 19 + 20 > 30", null],
  ] as const)("is distinguished from other errors of %s (%s: %s)", async ([provider, type, message, code]) => {
    const failure = await failureFor(provider, { status: 400, body: errorBody(provider, type, message, code) });
    expect(failure).toMatchObject({ kind: "context_overflow", status: 400, retryable: false });
  });

  test("is not confused with a limit of tokens per minute", async () => {
    const message = "Request too large: limit of tokens per min exceeded for this context window";
    const failure = await failureFor("openai", { status: 429, body: errorBody("openai", "tokens", message) });
    expect(failure.kind).toBe("rate_limit");
  });
});

test("an account without credit is not retryable", async () => {
  const body = errorBody("openai", "insufficient_quota", "You exceeded your quota.", "insufficient_quota");
  expect(await failureFor("openai", { status: 429, body })).toMatchObject({ kind: "other", retryable: false });
});

describe("a stream that goes wrong after it began", () => {
  const streams: [provider: Provider, file: string, kind: ModelFailure][] = [
    ["openai", "chat-error-event.sse.txt", "server"],
    ["openai", "chat-malformed.sse.txt", "malformed"],
    ["openai", "chat-early-end.sse.txt", "connection"],
    ["anthropic", "error-event.sse.txt", "overloaded"],
    ["anthropic", "malformed.sse.txt", "malformed"],
    ["anthropic", "early-end.sse.txt", "connection"],
  ];

  test.for(streams)("of %s (%s) is a failure of kind %s", async ([provider, file, kind]) => {
    await using server = await openModelServer({ body: wireFixture(provider, file) });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const delta of makers[provider](server.url).stream?.(request) ?? []) seen.push(delta.type);
    })();
    expect(await failureOf(reading)).toMatchObject({ kind });
    expect(seen).not.toContain("finish");
  });

  test.for([
    ["openai", "chat-text.sse.txt"],
    ["anthropic", "text.sse.txt"],
  ] as const)("never looks finished, wherever the connection of %s breaks", async ([provider, file]) => {
    const bytes = wireFixture(provider, file);
    for (let length = 0; length < bytes.length; length += Math.ceil(bytes.length / 23)) {
      await using server = await openModelServer({ body: bytes.subarray(0, length), after: "break" });
      const failure = await failureOf(collect(makers[provider](server.url).stream?.(request)));
      expect(failure.kind, `after ${length} bytes`).toBe("connection");
    }
  });

  test("uses the status that a gateway puts into its error", async () => {
    const error = { error: { code: 502, message: "Provider returned error" } };
    await using server = await openModelServer(
      { body: `data: ${JSON.stringify(error)}\n\n` },
      { body: JSON.stringify(error) },
    );
    const model = makers.openai(server.url);
    expect(await failureOf(collect(model.stream?.(request)))).toMatchObject({ kind: "server", status: 502 });
    expect(await failureOf(model.complete(request))).toMatchObject({ kind: "server", status: 502 });
  });
});

test("a model does not expose its key", () => {
  const models: Model[] = [makers.openai("http://127.0.0.1:1"), makers.anthropic("http://127.0.0.1:1")];
  for (const model of models) {
    expect(JSON.stringify(model)).not.toContain(KEY);
    expect(inspect(model, { depth: 9, showHidden: true })).not.toContain(KEY);
  }
});
