import { z } from "zod";
import type { RunError } from "../../../agent/run-error.ts";
import type { AssistantMessage, ToolMessage } from "../../../session/message.ts";
import type { WireRunEvent } from "../../run-wire.ts";
import { components, json, jsonObject, named } from "../schema.ts";
import { message, usage } from "../routes/wire-schemas.ts";
import { approval } from "./run-schemas.ts";

const text = z.string();
/** `agent` is there where the run of a group tells what happens in an agent's own. */
const ofRun = { agent: z.string().optional() };
const inRound = { ...ofRun, round: z.int().min(0) };
const answer = message as unknown as z.ZodType<AssistantMessage>;
const result = message as unknown as z.ZodType<ToolMessage>;
const error = named<RunError>(
  "RunError",
  z.object({ code: text.nullable(), message: text, details: jsonObject.optional() }),
);
const outcome = z.union([
  z.object({ reason: z.enum(["complete", "max-rounds", "all-passed"]) }),
  z.object({ reason: z.literal("agent-failed"), agent: text, error }),
]);

/** Which schema describes the events of a type, by their names in the document. */
const mapping: Record<string, string> = {};

/** The schema of one type of event, under its own name. */
function event<const Type extends string, Fields extends z.core.$ZodLooseShape>(type: Type, fields: Fields) {
  const schema = z.object({ type: z.literal(type), runId: text, ...fields });
  const id = `${type.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`;
  components.add(schema, { id });
  mapping[type] = `#/components/schemas/${id}`;
  return schema;
}

/** What happens in a run, of an agent or of a group. */
export const runEvent: z.ZodType<WireRunEvent> = named<WireRunEvent>(
  "RunEvent",
  z
    .discriminatedUnion("type", [
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
      event("tool-finished", { ...inRound, callId: text, message: result }),
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
        message: answer,
        stopReason: z.enum(["stop", "length", "tool_calls", "content_filter", "aborted", "error"]),
      }),
      event("leaf-moved", { ...ofRun, leafId: text.nullable() }),
      event("events-dropped", { ...ofRun, count: z.int() }),
      event("run-parked", { ...ofRun, questions: z.array(approval), expiresAt: text }),
      event("run-parked", { ...ofRun, questions: z.array(approval), expiresAt: text }),
      event("run-finished", { ...ofRun, truncated: z.boolean(), usage: usage.nullable() }),
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
    ])
    .meta({ discriminator: { propertyName: "type", mapping } }),
);
