import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Content, Message, RequestMessage } from "../message.ts";
import type { SandboxPlacement } from "./header.ts";
import type { Setup } from "./setup.ts";
import type { Usage } from "../usage.ts";

/** The status of a session. */
export type SessionStatus = "active" | "suspended" | "closed" | "expired";

/** How hard a model thinks: `"off"`, or a level its provider knows. */
export type ThinkingLevel = string;

/** The fields that every entry has beside its own. The store assigns `parentId` and `seq`. */
export interface EntryStamp {
  readonly id: string;
  /** A node's parent; for a fact, the leaf when it was appended. */
  readonly parentId: string | null;
  /** ISO-8601 with milliseconds, UTC. */
  readonly timestamp: string;
  /** The position in the log, from 0. */
  readonly seq: number;
  /** The user who caused the entry; absent if the program itself did. */
  readonly by?: string;
  /** The run that appended the entry (since format 3). Only the holder of the session's lease can set it. */
  readonly run?: string;
  /**
   * Set if the entry was imported after the session was created. Like the entries that a session starts with after an
   * import, it counts as another session's.
   */
  readonly inherited?: true;
}

/** The own fields of each entry type that is part of the tree. */
export type NodeBody =
  | {
      readonly type: "message";
      readonly message: Message;
      /** For an answer: the id of the `setup` with which the model was asked (since format 3). */
      readonly setup?: string;
    }
  | {
      readonly type: "compaction";
      readonly summary: string;
      readonly firstKeptEntryId: string;
      readonly tokensBefore: number;
      readonly details?: JsonValue;
      readonly usage?: Usage;
      readonly cost?: number;
    }
  | {
      readonly type: "branch_summary";
      readonly summary: string;
      readonly fromId: string | null;
      readonly details?: JsonValue;
      readonly usage?: Usage;
      readonly cost?: number;
    }
  | {
      readonly type: "custom_message";
      readonly customType: string;
      readonly content: Content;
      readonly display: boolean;
      readonly details?: JsonValue;
    }
  | { readonly type: "thinking_level_change"; readonly thinkingLevel: ThinkingLevel }
  | { readonly type: "model_change"; readonly provider: string; readonly modelId: string }
  | {
      readonly type: "variables";
      readonly set: JsonObject;
      readonly unset: readonly string[];
      readonly systemPrompt?: string | null;
      readonly activeTools?: readonly string[];
      readonly activeSkills?: readonly string[];
    }
  | { readonly type: "custom"; readonly customType: string; readonly data?: JsonValue }
  /**
   * Changes how models see an entry above it: they see `message` in its place, or nothing if `message` is null. With
   * `undo`, the id of another edit, it reverts that edit and has no other field.
   */
  | {
      readonly type: "context_edit";
      readonly targetId?: string;
      readonly message?: Message | null;
      readonly reason?: string;
      readonly undo?: string;
    }
  /**
   * The parts of an agent's requests other than messages; stored only if they differ from the agent's last `setup` on
   * the path.
   */
  | ({ readonly type: "setup" } & Setup)
  /** Replaces an entry whose content was erased; `was` is the original type. */
  | { readonly type: "erased"; readonly was: string; readonly reason?: string };

/** The own fields of each entry type that records something about the session. */
export type FactBody =
  | { readonly type: "leaf"; readonly targetId: string | null }
  | { readonly type: "label"; readonly targetId: string; readonly label: string | null }
  | { readonly type: "session_info"; readonly name: string }
  | { readonly type: "status"; readonly status: SessionStatus; readonly reason?: string }
  | {
      readonly type: "run";
      readonly runId: string;
      readonly phase: "started" | "finished" | "failed" | "cancelled";
      readonly error?: JsonValue;
      readonly usage?: Usage;
      readonly truncated?: boolean;
      /** With `finished`: the structured output, as the model wrote it. */
      readonly output?: JsonValue;
      /**
       * Where the run's tools act. Recorded by a second `started`, which has no other fields, once the sandbox is open.
       */
      readonly sandbox?: SandboxPlacement;
      /** With `started`: the token of the lease under which the run was claimed; 0 without a lease. */
      readonly claim?: number;
      /** With `started`: the name of the agent that answers, its model as `provider/id`, and the names of its tools. */
      readonly agent?: string;
      readonly model?: string;
      readonly tools?: readonly string[];
      /** With `started`: the id of the `setup` of the run's requests. A recovered run keeps it. */
      readonly setup?: string;
      /** With the first `started`: how many entries of the same append precede it, such as the run's input. */
      readonly before?: number;
      /** With `started`, for a group: the message that it answers, and the names of its agents in order. */
      readonly group?: { readonly messageId: string; readonly agents: readonly string[] };
    }
  /** Asks for a run. Its id is `requestIdOf(runId)`, so repeating the request has no effect. */
  | {
      readonly type: "run_request";
      readonly runId: string;
      /** The name of the agent or group that is asked to answer. */
      readonly agent?: string;
      readonly group?: string;
      /** The model to use instead of the agent's own, as `provider/id`. */
      readonly model?: string;
      readonly options?: JsonObject;
      /** The input: either the content of one user message, or several messages. A group accepts no `messages`. */
      readonly input?: Content;
      readonly messages?: readonly RequestMessage[];
      /** The earliest time at which the run may start. */
      readonly notBefore?: string;
      /** The latest time at which the run is stopped. */
      readonly deadline?: string;
    }
  /** The run waits for answers; no process holds it in the meantime. */
  | {
      readonly type: "run_parked";
      readonly runId: string;
      readonly questions: readonly { readonly callId: string; readonly question: string }[];
      readonly expiresAt?: string;
      /** The machine where the run's tools act, if they are bound to one. */
      readonly host?: string;
    }
  /** The reason why no worker could start or continue the run. Its id is `blockedIdOf(runId, code)`. */
  | { readonly type: "run_blocked"; readonly runId: string; readonly code: string; readonly message: string }
  /** Asks a run to stop. */
  | { readonly type: "cancel"; readonly runId: string; readonly reason?: string }
  /**
   * Without `decision`, a question; with it, the answer to the entry `question`. The id of an answer is
   * `answerIdOf(question)`.
   */
  | {
      readonly type: "approval";
      readonly runId: string;
      readonly callId: string;
      /** For a question: the position of the call in its answer, and a digest of its tool and arguments. */
      readonly index?: number;
      readonly digest?: string;
      readonly decision?: JsonValue;
      readonly question?: string;
      readonly note?: string;
      /** The call that the question is about, to be shown to the person who answers it. */
      readonly asked?: JsonObject;
    }
  | { readonly type: "queued"; readonly runId: string; readonly kind: "steer" | "followUp"; readonly content: Content }
  | { readonly type: "compaction_undone"; readonly targetId: string }
  | { readonly type: "trailer"; readonly closedAt: string; readonly entryCount: number; readonly usage: Usage }
  /** The call at this position of its answer may have had its effect. */
  | { readonly type: "effect"; readonly runId: string; readonly callId: string; readonly index?: number }
  | { readonly type: "prune"; readonly targetId: string };

/** Stands for a damaged entry in a salvaged file; never stored. */
export interface LostBody {
  readonly type: "lost";
  readonly reason: string;
}

/** The own fields of an entry. */
export type EntryBody = NodeBody | FactBody | LostBody;

/** One record of a session's log. An entry of an unknown type is kept unchanged and ignored by the folds. */
export type Entry = EntryBody & EntryStamp;

/** The entries of one type. */
export type EntryOf<T extends EntryBody["type"]> = Extract<EntryBody, { type: T }> & EntryStamp;

/**
 * An entry as a caller passes it. The caller may choose the id (default: a UUIDv7); the store assigns order and parent.
 */
export type EntryDraft = EntryBody & {
  readonly id?: string;
  readonly timestamp?: string;
  /** The user who caused the entry; overrides the append's `by`. */
  readonly by?: string;
  /** Accepted only by `create` and by a verbatim append, which copy entries of another log. */
  readonly parentId?: string | null;
  /** Accepted where `parentId` is. */
  readonly inherited?: true;
  /** Accepted where `parentId` is; other appends name the run in their options. */
  readonly run?: string;
};

const NODE_TYPES: ReadonlySet<string> = new Set<NodeBody["type"] | "lost">([
  "message",
  "compaction",
  "branch_summary",
  "custom_message",
  "thinking_level_change",
  "model_change",
  "variables",
  "custom",
  "context_edit",
  "setup",
  "erased",
  "lost",
]);

const FACT_TYPES: ReadonlySet<string> = new Set<FactBody["type"]>([
  "leaf",
  "label",
  "session_info",
  "status",
  "run",
  "run_request",
  "run_parked",
  "run_blocked",
  "cancel",
  "approval",
  "queued",
  "compaction_undone",
  "trailer",
  "effect",
  "prune",
]);

/**
 * Whether an entry is part of the tree. An entry of an unknown type is part of it if it has `node: true`. False for anything that
 * is not an entry.
 */
export function isNode(entry: { readonly type: string; readonly node?: unknown }): boolean {
  return NODE_TYPES.has(entry?.type) || (entry?.node === true && !FACT_TYPES.has(entry.type));
}

/** Whether this version knows the entry type. */
export function isKnownType(type: string): boolean {
  return NODE_TYPES.has(type) || FACT_TYPES.has(type);
}

/** The fields that the store adds to an entry. */
export const STAMP_FIELDS: ReadonlySet<string> = new Set([
  "id",
  "parentId",
  "timestamp",
  "seq",
  "by",
  "run",
  "inherited",
]);

/** The own fields of an entry, without those that the store adds. */
export function bodyOf(entry: EntryDraft | Entry): EntryBody {
  const {
    id: _id,
    parentId: _parent,
    timestamp: _time,
    seq: _seq,
    by: _by,
    run: _run,
    inherited: _inherited,
    ...body
  } = entry as Entry;
  return body as EntryBody;
}

/** The approximate number of characters of an entry as JSON, counted without serializing it. */
export function entryCharacters(entry: Entry): number {
  return charactersIn(entry);
}

/** Recursion is safe: stored values are nested at most `JSON_DEPTH_MAX` deep. */
function charactersIn(value: unknown): number {
  if (typeof value === "string") return value.length + VALUE_CHARACTERS;
  if (typeof value !== "object" || value === null) return VALUE_CHARACTERS;
  let characters = VALUE_CHARACTERS;
  if (Array.isArray(value)) for (const item of value) characters += charactersIn(item);
  else for (const key in value) characters += key.length + charactersIn((value as JsonObject)[key]);
  return characters;
}

/** The estimated characters of a value in addition to its text. */
const VALUE_CHARACTERS = 8;
