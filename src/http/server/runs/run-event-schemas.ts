import { z } from "zod";
import type { RunError } from "../../../session/log/run-event.ts";
import type { WireRunEvent } from "../../run-wire.ts";
import { assistantMessage, toolMessage } from "../routes/entry-schemas.ts";
import { stopReason, usage } from "../routes/wire-schemas.ts";
import { json, jsonObject, named, nameVariants } from "../schema.ts";
import { approval } from "./run-schemas.ts";

const text = z.string();
/** `agent` is set for events of an agent's own run inside a group. */
const ofRun = { agent: z.string().optional() };
const inRound = { ...ofRun, round: z.int().min(0) };
const error = named<RunError>(
  "RunError",
  z.object({ code: text.nullable(), message: text, details: jsonObject.optional() }),
);
const outcome = z.union([
  z.object({ reason: z.enum(["complete", "max-rounds", "all-passed"]) }),
  z.object({ reason: z.literal("agent-failed"), agent: text, error }),
]);

/** The schema of one type of event. */
function event<const Type extends string, Fields extends z.core.$ZodLooseShape>(type: Type, fields: Fields) {
  return z.object({ type: z.literal(type), runId: text, ...fields });
}

/** An event of an agent's or a group's run. */
export const runEvent: z.ZodType<WireRunEvent> = named<WireRunEvent>(
  "RunEvent",
  nameVariants(
    "Event",
    z.discriminatedUnion("type", [
      event("run-started", { ...ofRun, claim: z.int().optional() }),
      event("round-started", inRound),
      event("text-delta", { ...inRound, text }),
      event("thinking-delta", { ...inRound, text }),
      event("tool-call-delta", {
        ...inRound,
        index: z.int(),
        id: text.optional(),
        name: text.optional(),
        arguments: text.optional(),
      }),
      event("model-retry", { ...inRound, attempt: z.int(), delayMs: z.number(), error }),
      event("usage", { ...inRound, usage, cost: z.number().optional() }),
      event("tool-started", { ...inRound, callId: text, name: text, arguments: json }),
      event("tool-finished", { ...inRound, callId: text, message: toolMessage }),
      event("approval-required", { ...inRound, approval }),
      event("approval-settled", { ...inRound, callId: text, question: text }),
      event("compaction", {
        ...inRound,
        entryId: text,
        summary: text,
        firstKeptEntryId: text,
        tokensBefore: z.number(),
      }),
      event("round-finished", {
        ...inRound,
        message: assistantMessage,
        stopReason,
      }),
      event("budget-warning", {
        ...ofRun,
        exceeded: z.boolean(),
        window: text,
        unit: z.enum(["totalTokens", "cost"]),
        limit: z.number(),
        spent: z.number(),
        reserved: z.number(),
        movesOnAt: text.nullable(),
      }),
      event("leaf-moved", { ...ofRun, leafId: text.nullable() }),
      event("events-dropped", { ...ofRun, count: z.int() }),
      event("run-parked", { ...ofRun, questions: z.array(approval), expiresAt: text.optional() }),
      event("run-finished", { ...ofRun, truncated: z.boolean(), usage: usage.nullable(), output: json.optional() }),
      event("run-failed", { ...ofRun, error }),
      event("group-started", {
        sessionId: text,
        messageId: text,
        agents: z.array(text),
        resumed: z.boolean(),
        claim: z.int().optional(),
      }),
      event("agent-selected", { agent: text, move: z.int() }),
      event("agent-finished", {
        agent: text,
        kind: z.enum(["spoke", "passed", "refused"]),
        turnId: text.nullable(),
        text,
        error: error.optional(),
      }),
      event("agent-failed", { agent: text, error }),
      event("group-finished", { outcome }),
      event("group-failed", { error }),
    ]),
  ),
);
