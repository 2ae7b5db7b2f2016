import { z } from "zod";
import type { Approval } from "../../../session/log/run-event.ts";
import { REASON_CHARACTERS_MAX } from "../../../session/limits.ts";
import type { Content, RequestMessage } from "../../../session/message.ts";
import type { RunInput } from "../../../session/run-input.ts";
import type { SandboxReach } from "../../../session/sandbox/sandbox.ts";
import type {
  AnswerRequest,
  FleetView,
  FleetWorker,
  ListRuns,
  QuestionView,
  RunRequest,
  RunView,
} from "../../run-wire.ts";
import type { Page } from "../../wire.ts";
import { content, id, json, jsonObject, limit, list, named, queryInteger } from "../schema.ts";
import { problem } from "../routes/wire-schemas.ts";

const text = z.string();
const reason = text.max(REASON_CHARACTERS_MAX);
/** The format of times in entries: with milliseconds, in UTC. */
const time = z.iso.datetime({ precision: 3 });
const openStatus = z.enum(["requested", "running", "parked", "interrupted"]);

/** The most messages in the input of a run. */
const INPUT_MESSAGES_MAX = 1000;

const requestMessage = named<RequestMessage>(
  "RequestMessage",
  z.strictObject({ role: z.enum(["system", "user", "assistant"]), content }),
);

/** The input of a run. */
const runInput: z.ZodType<RunInput> = named<RunInput>(
  "RunInput",
  z.union([content, list(requestMessage, INPUT_MESSAGES_MAX, 1)]) as unknown as z.ZodType<RunInput>,
);

/** A request for a run. */
export const runRequest: z.ZodType<RunRequest> = named<RunRequest>(
  "RunRequest",
  z.strictObject({
    input: runInput,
    agent: id.optional(),
    model: id.optional(),
    ifBusy: z.enum(["reject", "enqueue", "interrupt"]).optional(),
    group: id.optional(),
    runId: id.optional(),
    notBefore: time.optional(),
    deadline: time.optional(),
    output: jsonObject.optional(),
  }),
);

const reach = named<SandboxReach>(
  "SandboxReach",
  z.object({ directory: text.nullable(), isolated: z.boolean(), network: z.boolean() }),
);
const asked = {
  question: text,
  callId: text,
  name: text,
  arguments: json,
  effects: z.enum(["reads", "writes", "commands"]),
  reach: reach.nullable(),
};

/** A call that waits for approval. */
export const approval: z.ZodType<Approval> = named<Approval>(
  "Approval",
  z.object({ ...asked, following: z.int().optional(), innerRunId: text.optional() }) as unknown as z.ZodType<Approval>,
);

const question = named<QuestionView>(
  "Question",
  z.object({ ...asked, askedAt: text, expiresAt: text.optional() }) as unknown as z.ZodType<QuestionView>,
);

/** A run. */
export const runView: z.ZodType<RunView> = named<RunView>(
  "Run",
  z.object({
    runId: text,
    sessionId: text,
    userId: text.nullable(),
    agent: text.nullable(),
    group: text.nullable(),
    model: text.nullable(),
    status: z.enum([...openStatus.options, "finished", "failed", "cancelled"]),
    by: text.nullable(),
    requestedAt: text.nullable(),
    notBefore: text.nullable(),
    startedAt: text.nullable(),
    endedAt: text.nullable(),
    withoutWorker: z.boolean(),
    questions: z.array(question),
    output: json,
    problem: problem.nullable(),
  }),
);

interface RunList {
  readonly items: readonly RunView[];
}

/** The runs of a session. */
export const runList: z.ZodType<RunList> = named<RunList>("RunList", z.object({ items: z.array(runView) }));

/** A page of runs. */
export const runPage: z.ZodType<Page<RunView>> = named<Page<RunView>>(
  "RunPage",
  z.object({ items: z.array(runView), next: text.nullable() }),
);

const worker = named<FleetWorker>(
  "Worker",
  z.object({
    name: text.nullable(),
    host: text.nullable(),
    agents: z.array(text),
    groups: z.array(text),
    concurrency: z.int(),
    active: z.int(),
    runs: z.array(z.object({ sessionId: text, runId: text, runner: text, userId: text.nullable(), since: text })),
  }),
);

/** The workers with their runs, and the waiting runs. */
export const fleetView: z.ZodType<FleetView> = named<FleetView>(
  "Fleet",
  z.object({ workers: z.array(worker), waiting: z.int(), requested: runPage, interrupted: runPage }),
);

/** Which runs to list. */
export const runsQuery: z.ZodType<ListRuns> = z.strictObject({
  state: z.enum([...openStatus.options, "asking"]),
  userId: id.optional(),
  limit: limit.optional(),
  cursor: text.optional(),
}) as unknown as z.ZodType<ListRuns>;

/** The answer to a question. */
export const answerRequest: z.ZodType<AnswerRequest> = named<AnswerRequest>(
  "AnswerRequest",
  z.strictObject({ approve: z.boolean(), reason: reason.optional(), note: reason.optional() }),
);

interface InputRequest {
  readonly content: Content;
}

/** A message to a run in progress. */
export const inputRequest: z.ZodType<InputRequest> = named<InputRequest>("InputRequest", z.strictObject({ content }));

/** The position at which to start watching a session. */
export const watchQuery: z.ZodType<{ readonly after?: number | undefined }> = z.strictObject({
  after: queryInteger(-1).optional(),
});
