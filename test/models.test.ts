import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Model, ModelReply, ModelRequest } from "../src/agent/model/model.ts";
import { ModelError } from "../src/agent/model/model-error.ts";
import { aiSdk } from "../src/models/ai-sdk/index.ts";
import { anthropic } from "../src/models/anthropic/index.ts";
import { offline, scripted } from "../src/models/index.ts";
import { openai } from "../src/models/openai/index.ts";
import { textOf } from "../src/session/message.ts";
import { modelCases, modelSkipReason, type ModelSubject } from "../src/testing/index.ts";
import { type ModelServer, openModelServer } from "./model-server.ts";
import { openStandIn, plainAnswer, type StandIn } from "./model-stand-in.ts";
import { skipBecause } from "./skip.ts";

const subjects: Readonly<Record<string, ModelSubject & { readonly skips?: readonly string[] }>> = {
  offline: offlineSubject(),
  scripted: scriptedSubject(),
  "scripted, without streams": {
    ...scriptedSubject({ stream: false }),
    lacks: ["stream"],
    skips: ["the model has no stream"],
  },
  "openai chat": remote((url) => openai("gpt-4o-mini", { apiKey: "k", baseURL: `${url}/v1` })),
  "openai responses": remote((url) => openai("gpt-4o-mini", { api: "responses", apiKey: "k", baseURL: `${url}/v1` })),
  anthropic: remote((url) => anthropic("claude-sonnet-4-6", { apiKey: "k", baseURL: url })),
  "AI SDK": remote((url) => aiSdk(compatibleAt(url))),
};

let standIn: StandIn;
let silent: ModelServer;
let refusing: ModelServer;

beforeAll(async () => {
  standIn = await openStandIn();
  silent = await openModelServer({ after: "hang" });
  const error = { type: "authentication_error", message: "Wrong key." };
  refusing = await openModelServer({ status: 401, body: JSON.stringify({ type: "error", error }) });
});

afterAll(async () => {
  await standIn[Symbol.asyncDispose]();
  await silent[Symbol.asyncDispose]();
  await refusing[Symbol.asyncDispose]();
});

test("every case has a unique name", () => {
  expect(new Set(modelCases.map(({ name }) => name)).size).toBe(modelCases.length);
});

describe.for(Object.entries(subjects))("the %s model", ([, subject]) => {
  for (const modelCase of modelCases) {
    test(modelCase.name, async (context) => {
      const reason = modelSkipReason(modelCase, subject);
      if (reason !== null) {
        expect(subject.skips).toContain(reason);
        skipBecause(context, reason);
      }
      await modelCase.run(subject);
    });
  }
});

/** A model behind HTTP: at a server that answers, at one that does not, and at one that refuses. */
function remote(modelAt: (url: string) => Model): ModelSubject {
  let askedBefore = 0;
  return {
    open: () => modelAt(standIn.url),
    openSilent: () => modelAt(silent.url),
    openFailing() {
      askedBefore = refusing.asked.length;
      return modelAt(refusing.url);
    },
    attempts: () => refusing.asked.length - askedBefore,
  };
}

function compatibleAt(url: string) {
  const provider = createOpenAICompatible({ name: "local", apiKey: "k", baseURL: `${url}/v1`, includeUsage: true });
  return provider.chatModel("m");
}

function offlineSubject() {
  return {
    open: () => offline(),
    openSilent: () => offline({ delayMs: 3_600_000 }),
    skips: ["the subject has no openFailing"],
  };
}

function scriptedSubject(options: { readonly stream?: boolean } = {}): ModelSubject {
  let failing = scripted([]);
  return {
    open: () =>
      scripted(
        Array.from({ length: 10 }, () => standInReply),
        options,
      ),
    openSilent: () => scripted([() => new Promise(() => {})], options),
    openFailing() {
      failing = scripted([new ModelError("authentication", "Wrong key.", { provider: "scripted" })], options);
      return failing;
    },
    attempts: () => failing.requests.length,
  };
}

function standInReply({ messages, tools = [], toolChoice = "auto" }: ModelRequest): ModelReply {
  const last = messages.at(-1);
  const names = tools.map(({ name }) => name);
  const allowed = typeof toolChoice === "object" ? [toolChoice.name] : toolChoice === "none" ? [] : names;
  const { content, toolCalls } = plainAnswer(textOf(last?.content ?? ""), last?.role === "user" ? allowed : []);
  const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };
  return { role: "assistant", content, usage, ...(toolCalls === undefined ? {} : { toolCalls }) };
}
