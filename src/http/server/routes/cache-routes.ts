import { z } from "zod";
import { defined } from "../../../internal/defined.ts";
import { explainCache } from "../../../models/explain-cache.ts";
import type { CacheAnswer, CacheCause, CacheReport } from "../../../session/context/cache-report.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { limit, named, nameVariants, queryInteger } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { visibleHead } from "./session-access.ts";

const ANSWERS_DEFAULT = 200;

const text = z.string();
const count = z.int().min(0);
const field = z.enum(["tools", "instructions", "output", "thinkingLevel", "toolChoice", "providerOptions"]);

const cause = named<CacheCause>(
  "CacheCause",
  nameVariants(
    "CacheCause",
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("first") }),
      z.object({ type: z.literal("lifetime"), gapMs: z.number(), lifetimeMs: z.number() }),
      z.object({ type: z.literal("setup"), field, tool: text.optional() }),
      z.object({ type: z.literal("edit"), entryId: text }),
      z.object({ type: z.literal("compaction"), entryId: text }),
      z.object({ type: z.literal("transform") }),
      z.object({ type: z.literal("branch") }),
      z.object({ type: z.literal("model"), before: text }),
      z.object({ type: z.literal("provider") }),
      z.object({ type: z.literal("unknown") }),
    ]),
  ),
);

const cacheAnswer = named<CacheAnswer>(
  "CacheAnswer",
  z.object({
    entryId: text,
    timestamp: text,
    agent: text.nullable(),
    model: text.nullable(),
    inputTokens: count,
    expectedTokens: count,
    readTokens: count,
    rewrittenTokens: count,
    cause: cause.nullable(),
  }),
);

const causeType = z.enum([
  "first",
  "lifetime",
  "setup",
  "edit",
  "compaction",
  "transform",
  "branch",
  "model",
  "provider",
  "unknown",
]);
const report = named<CacheReport>(
  "CacheReport",
  z.object({
    sessionId: text,
    answers: z.array(cacheAnswer),
    count,
    inputTokens: count,
    readTokens: count,
    writtenTokens: count,
    contextTokens: count,
    rewriteFactor: z.number().nullable(),
    causes: z.array(z.object({ type: causeType, answers: count, tokens: count })),
  }),
);

/** Adds the route that explains what the answers of a session had from prompt caches. */
export function mountCache(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/sessions/:id/cache",
    operationId: "explainCache",
    summary:
      "What the answers of a session had from the prompt caches of their providers, and why some had less than they could. The cost is proportional to the size of the log.",
    query: z.strictObject({ limit: limit.optional(), lifetimeMs: queryInteger(1).optional() }),
    answers: { 200: { description: "The report.", schema: report } },
    async handle({ param, query, caller }) {
      const head = await visibleHead(services, param("id"), caller);
      const { limit: answers = ANSWERS_DEFAULT, lifetimeMs } = query;
      return answer(await explainCache(services.store, head.header.id, { limit: answers, ...defined({ lifetimeMs }) }));
    },
  });
}
