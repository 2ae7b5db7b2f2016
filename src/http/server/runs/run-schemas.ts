import { z } from "zod";
import type { Approval } from "../../../agent/run-event.ts";
import { REASON_CHARACTERS_MAX } from "../../../session/limits.ts";
import type { Content } from "../../../session/message.ts";
import type { SandboxReach } from "../../../session/sandbox.ts";
import type { ApprovalRequest, RunRequest, RunView } from "../../wire.ts";
import { content, id, json, named, queryInteger } from "../schema.ts";
import { problem } from "../wire-schemas.ts";

const text = z.string();
const reason = text.max(REASON_CHARACTERS_MAX);

/** What a run is started with. */
export const runRequest: z.ZodType<RunRequest> = named<RunRequest>(
  "RunRequest",
  z.strictObject({
    input: content,
    agent: id.optional(),
    model: id.optional(),
    ifBusy: z.enum(["reject", "enqueue", "interrupt"]).optional(),
    group: id.optional(),
  }),
);

const reach = named<SandboxReach>(
  "Reach",
  z.object({ directory: text.nullable(), isolated: z.boolean(), network: z.boolean() }),
);

/** A call that waits for a person's word. */
export const approval: z.ZodType<Approval> = named<Approval>(
  "Approval",
  z.object({
    question: text,
    callId: text,
    name: text,
    arguments: json,
    effects: z.enum(["reads", "writes", "commands"]),
    reach: reach.nullable(),
    innerRunId: text.optional(),
  }) as unknown as z.ZodType<Approval>,
);

/** A run. */
export const runView: z.ZodType<RunView> = named<RunView>(
  "Run",
  z.object({
    runId: text,
    sessionId: text,
    agent: text.nullable(),
    group: text.nullable(),
    status: z.enum(["running", "finished", "failed", "aborted"]),
    startedAt: text,
    endedAt: text.nullable(),
    approvals: z.array(approval),
    problem: problem.nullable(),
  }),
);

/** The runs of a session. */
export const runList: z.ZodType<{ readonly items: readonly RunView[] }> = z.object({ items: z.array(runView) });

/** The answer to a call that waits. */
export const approvalRequest: z.ZodType<ApprovalRequest> = named<ApprovalRequest>(
  "ApprovalRequest",
  z.strictObject({ approve: z.boolean(), reason: reason.optional() }) as unknown as z.ZodType<ApprovalRequest>,
);

/** Why a run is stopped. */
export const abortRequest: z.ZodType<{ readonly reason?: string | undefined }> = z.strictObject({
  reason: reason.optional(),
});

/** What is said to a run that goes on. */
export const inputRequest: z.ZodType<{ readonly content: Content }> = z.strictObject({ content });

/** A request that says nothing more. */
export const emptyRequest: z.ZodType<object> = z.strictObject({});

/** From where a session is watched. */
export const watchQuery: z.ZodType<{ readonly after?: number | undefined }> = z.strictObject({
  after: queryInteger(-1).optional(),
});
