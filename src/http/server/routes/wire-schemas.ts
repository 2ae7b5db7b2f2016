import { z } from "zod";
import type { SessionStatus } from "../../../session/log/entry.ts";
import type { Settings } from "../../../session/log/settings.ts";
import { type Lineage, LINEAGE_KINDS } from "../../../session/log/header.ts";
import { REASON_CHARACTERS_MAX } from "../../../session/limits.ts";
import type { StopReason } from "../../../session/message.ts";
import type { SessionState, SessionTurn } from "../../../session/state/state.ts";
import type { Checkpoint } from "../../../session/store.ts";
import type { Usage } from "../../../session/usage.ts";
import type { TimelineCheckpoint, TreeNodeView } from "../../tree-wire.ts";
import type {
  ImportedView,
  ListedSession,
  Page,
  Problem,
  ReasonRequest,
  RestoredSession,
  SessionView,
} from "../../wire.ts";
import { content, json, jsonObject, named, toolCall } from "../schema.ts";

const text = z.string();
const count = z.int().min(0);
const nullableText = text.nullable();

/** The name of the program that a session is from. */
export const program: z.ZodType<string> = z.string().min(1).max(100);
/** The status of a session. */
export const status: z.ZodType<SessionStatus> = z.enum(["active", "suspended", "closed", "expired"]);

/** Why a model stopped. */
export const stopReason: z.ZodType<StopReason> = z.enum([
  "stop",
  "length",
  "tool_calls",
  "content_filter",
  "aborted",
  "error",
]);

/** A request with an optional reason. */
export const reasonRequest: z.ZodType<ReasonRequest> = named<ReasonRequest>(
  "ReasonRequest",
  z.strictObject({ reason: text.max(REASON_CHARACTERS_MAX).optional() }),
);

/** A request with an empty body. */
export const emptyRequest: z.ZodType<object> = named<object>("EmptyRequest", z.strictObject({}));

/** Token usage. */
export const usage: z.ZodType<Usage> = named<Usage>(
  "Usage",
  z.looseObject({
    inputTokens: count,
    outputTokens: count,
    totalTokens: count,
    cacheReadTokens: count.optional(),
    cacheWriteTokens: count.optional(),
    reasoningTokens: count.optional(),
  }),
);

/** A problem document. */
export const problem: z.ZodType<Problem> = named<Problem>(
  "Problem",
  z.object({
    type: text,
    title: text,
    status: z.int(),
    detail: text,
    code: text,
    problems: z.array(z.object({ path: text, message: text })).optional(),
  }),
);

/** The lineage of a session. */
export const lineage: z.ZodType<Lineage> = named<Lineage>(
  "Lineage",
  z.object({
    parents: z.array(text),
    operator: text,
    kind: z.enum(LINEAGE_KINDS),
    extras: z.array(z.tuple([text, json])),
  }),
);

/** The settings of a path. */
export const settings: z.ZodType<Settings> = z.object({
  variables: jsonObject,
  systemPrompt: nullableText,
  activeTools: z.array(text),
  activeSkills: z.array(text),
  setups: z.record(text, text),
});
const listedPath = z.object({
  depth: count,
  turnCount: count,
  usage,
  cost: z.number(),
  compactionId: nullableText,
  model: z.object({ provider: text, modelId: text }).nullable(),
  thinkingLevel: text,
});
const pathSummary = listedPath.extend({ settings });

const header = z.object({
  type: z.literal("session"),
  version: z.union([z.literal(1), z.literal(2), z.literal(3)]),
  id: text,
  createdAt: text,
  userId: nullableText,
  cwd: nullableText,
  lineage,
  forkedFrom: z
    .object({ sessionId: text, entryId: nullableText, version: count, branchName: text.optional() })
    .nullable(),
  sandbox: z.object({ backend: text, spec: json, handleId: nullableText }).nullable(),
  metadata: jsonObject,
  inherited: z.object({ entries: count, counts: z.boolean() }).optional(),
  rootId: text.optional(),
});

const openRun = z.object({
  runId: text,
  state: z.enum(["requested", "started", "parked", "answered"]),
  notBefore: text.optional(),
  questions: z.array(text).optional(),
  innerQuestions: z.array(text).optional(),
  expiresAt: text.optional(),
  cancelled: z.literal(true).optional(),
  claims: count.optional(),
});

const headFields = {
  header,
  version: count,
  leafId: nullableText,
  path: pathSummary,
  status,
  statusReason: nullableText,
  name: nullableText,
  updatedAt: text,
  modifiedAt: text,
  messageCount: count,
  firstMessage: nullableText,
  usage,
  cost: z.number(),
  openRuns: z.array(openRun),
  undone: z.array(text),
  closed: z.boolean(),
};

const sessionFields = {
  ...headFields,
  running: z.object({ runId: text }).nullable(),
};

/** A session: its head, and the run that holds its lease. */
export const sessionView: z.ZodType<SessionView> = named<SessionView>("Session", z.object(sessionFields));

/** An imported session, with a report on the file of another program. */
export const importedView: z.ZodType<ImportedView> = named<ImportedView>(
  "ImportedSession",
  z.object({
    ...sessionFields,
    found: z
      .object({
        ...{ format: text, added: count, mapped: count, kept: count, lost: count },
        unknownKinds: z.record(z.string(), count),
      })
      .optional(),
  }),
);

/** A session in a listing. */
export const listedSession: z.ZodType<ListedSession> = named<ListedSession>(
  "ListedSession",
  z.object({ ...sessionFields, path: listedPath }),
);

/** A page of sessions. */
export const sessionPage: z.ZodType<Page<ListedSession>> = named<Page<ListedSession>>(
  "SessionPage",
  z.object({ items: z.array(listedSession), next: nullableText }),
);

/** A node of a tree. */
export const treeNode: z.ZodType<TreeNodeView> = named<TreeNodeView>(
  "TreeNode",
  z.object({
    id: text,
    parentId: text.nullable(),
    skipped: z.int().optional(),
    seq: z.int(),
    type: text,
    timestamp: text,
    role: z.enum(["system", "user", "assistant", "tool"]).nullable(),
    preview: text,
    label: text.nullable(),
    checkpoints: z.array(text),
    toolCalls: z.array(text),
  }),
);

const checkpointFields = {
  id: text,
  sessionId: text,
  version: count,
  leafId: nullableText,
  createdAt: text,
  parentCheckpointId: nullableText,
  metadata: jsonObject,
  by: text.optional(),
  sandboxSnapshot: json.optional(),
};

/** A checkpoint. */
export const checkpoint: z.ZodType<Checkpoint> = named<Checkpoint>("Checkpoint", z.object(checkpointFields));

/** A checkpoint with its node in the tree. */
export const timelineCheckpoint: z.ZodType<TimelineCheckpoint> = named<TimelineCheckpoint>(
  "TimelineCheckpoint",
  z.object({ ...checkpointFields, node: treeNode.nullable(), stepsBack: count.nullable() }),
);

/** A session after a restore. */
export const restoredSession: z.ZodType<RestoredSession> = named<RestoredSession>(
  "RestoredSession",
  z.object({ ...sessionFields, kept: checkpoint.nullable() }),
);

const turn = named<SessionTurn>(
  "Turn",
  z.object({
    turnId: text,
    role: z.enum(["system", "user", "assistant", "tool"]),
    content: content.nullable(),
    timestamp: text,
    metadata: jsonObject,
    toolCalls: z.array(toolCall).optional(),
    toolCallId: text.optional(),
    toolName: text.optional(),
    isError: z.boolean().optional(),
    stopReason: stopReason.optional(),
    agent: text.optional(),
    provider: text.optional(),
    model: text.optional(),
    usage: usage.optional(),
    tokensUsed: z.number(),
    cost: z.number(),
  }),
);

/** The state of a session at its leaf. */
export const sessionState: z.ZodType<SessionState> = named<SessionState>(
  "SessionState",
  z.object({
    sessionId: text,
    userId: nullableText,
    status,
    name: nullableText,
    turns: z.array(turn),
    turnCount: count,
    metadata: jsonObject,
    variables: jsonObject,
    systemPrompt: nullableText,
    activeTools: z.array(text),
    activeSkills: z.array(text),
    createdAt: text,
    updatedAt: text,
    checkpointId: nullableText,
    totalTokens: count,
    totalCost: z.number(),
    spent: z.object({ totalTokens: count, totalCost: z.number() }),
    parentSessionId: nullableText,
    branchName: nullableText,
    version: count,
    leafId: nullableText,
  }),
);
