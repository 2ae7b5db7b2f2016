import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Content, Message, RequestMessage } from "../message.ts";
import type { SandboxPlacement } from "./header.ts";
import type { Setup } from "./setup.ts";
import type { Usage } from "../usage.ts";

/** Where a session stands in its life. */
export type SessionStatus = "active" | "suspended" | "closed" | "expired";

/** How hard a model thinks: `"off"`, or a level its provider knows. */
export type ThinkingLevel = string;

/** What every entry carries beside its own fields. The store assigns `parentId` and `seq`. */
export interface EntryStamp {
  readonly id: string;
  /** A node's parent; for a fact, the leaf when it was appended. */
  readonly parentId: string | null;
  /** ISO-8601 with milliseconds, UTC. */
  readonly timestamp: string;
  /** The position in the log, from 0. */
  readonly seq: number;
  /** The user who caused it; left out where that was the program itself. */
  readonly by?: string;
  /** The run that appended it, since format 3; only the holder of the session's lease can say so. */
  readonly run?: string;
  /** It came in from outside after the session was made: like what a session begins with by an import, it is another's. */
  readonly inherited?: true;
}

/** The own fields of each entry type that hangs on the tree. */
export type NodeBody =
  | {
      readonly type: "message";
      readonly message: Message;
      /** Of an answer: the id of the `setup` that it was asked with, since format 3. */
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
   * Changes what models see of an entry above it: `message` instead, or nothing if that is null. With `undo`, the id of another
   * edit, it takes that one back, and has no other field.
   */
  | {
      readonly type: "context_edit";
      readonly targetId?: string;
      readonly message?: Message | null;
      readonly reason?: string;
      readonly undo?: string;
    }
  /** What the requests of an agent contain beside their messages; stored where it differs from that agent's last one on the path. */
  | ({ readonly type: "setup" } & Setup)
  /** Stands where what someone said was removed; `was` is the type that stood there. */
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
      /** With `finished`: the value that it was asked for, as the model wrote it. */
      readonly output?: JsonValue;
      /** Where the run's tools act, once that is open. A second `started` says nothing else. */
      readonly sandbox?: SandboxPlacement;
      /** With `started`: the token of the lease that it was claimed under, 0 where there is none. */
      readonly claim?: number;
      /** With `started`: the agent that answers, by name; its model as `provider/id`; its tools by name. */
      readonly agent?: string;
      readonly model?: string;
      readonly tools?: readonly string[];
      /** With the first `started`: the id of the `setup` that its requests are sent with, which recovering it does not change. */
      readonly setup?: string;
      /** With the first `started`: how many entries of the same append precede it, such as the run's input. */
      readonly before?: number;
      /** With `started`, of a group: the message that it answers and its agents, by name, in their order. */
      readonly group?: { readonly messageId: string; readonly agents: readonly string[] };
    }
  /** Asks for a run; its id is `requestIdOf(runId)`, so that asking again is the same request. */
  | {
      readonly type: "run_request";
      readonly runId: string;
      /** Who is to answer: an agent or a group, by name. */
      readonly agent?: string;
      readonly group?: string;
      /** Instead of the agent's own, as `provider/id`. */
      readonly model?: string;
      readonly options?: JsonObject;
      /** What is said: either the content of one message of the user's, or several messages; a group takes no `messages`. */
      readonly input?: Content;
      readonly messages?: readonly RequestMessage[];
      /** When it may begin at the earliest. */
      readonly notBefore?: string;
      /** When it is stopped at the latest. */
      readonly deadline?: string;
    }
  /** The run waits for answers, and nobody has it meanwhile. */
  | {
      readonly type: "run_parked";
      readonly runId: string;
      readonly questions: readonly { readonly callId: string; readonly question: string }[];
      readonly expiresAt?: string;
      /** The machine that the place of its tools is on, where it is on one. */
      readonly host?: string;
    }
  /** No worker could begin the run, or go on with it, and why; its id is `blockedIdOf(runId, code)`. */
  | { readonly type: "run_blocked"; readonly runId: string; readonly code: string; readonly message: string }
  /** Tells a run to stop. */
  | { readonly type: "cancel"; readonly runId: string; readonly reason?: string }
  /** Without `decision` it asks, with it it answers the entry `question`; an answer's id is `answerIdOf(question)`. */
  | {
      readonly type: "approval";
      readonly runId: string;
      readonly callId: string;
      /** Of a question: the position of the call in its answer, and a digest of its tool and arguments. */
      readonly index?: number;
      readonly digest?: string;
      readonly decision?: JsonValue;
      readonly question?: string;
      readonly note?: string;
      /** What is asked about, for whoever is to answer. */
      readonly asked?: JsonObject;
    }
  | { readonly type: "queued"; readonly runId: string; readonly kind: "steer" | "followUp"; readonly content: Content }
  | { readonly type: "compaction_undone"; readonly targetId: string }
  | { readonly type: "trailer"; readonly closedAt: string; readonly entryCount: number; readonly usage: Usage }
  /** The call at this position of its answer may have had its effect. */
  | { readonly type: "effect"; readonly runId: string; readonly callId: string; readonly index?: number }
  | { readonly type: "prune"; readonly targetId: string };

/** Replaces a damaged entry when a file is salvaged; it is never stored. */
export interface LostBody {
  readonly type: "lost";
  readonly reason: string;
}

/** The own fields of an entry. */
export type EntryBody = NodeBody | FactBody | LostBody;

/** One record of a session's log. A type that this version does not know is kept as it is and ignored by the folds. */
export type Entry = EntryBody & EntryStamp;

/** The entry of one type. */
export type EntryOf<T extends EntryBody["type"]> = Extract<EntryBody, { type: T }> & EntryStamp;

/** An entry as a caller gives it: the id is the caller's (default a UUIDv7), order and parent are the store's. */
export type EntryDraft = EntryBody & {
  readonly id?: string;
  readonly timestamp?: string;
  /** The user who caused it, instead of the append's own `by`. */
  readonly by?: string;
  /** Kept only by `create` and by a verbatim append, which copy entries of another log. */
  readonly parentId?: string | null;
  /** Likewise. */
  readonly inherited?: true;
  /** Likewise; a run names itself in the options of its append. */
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

/** Whether an entry hangs on the tree; an unknown type does when it carries `node: true`. What is no entry does not. */
export function isNode(entry: { readonly type: string; readonly node?: unknown }): boolean {
  return NODE_TYPES.has(entry?.type) || (entry?.node === true && !FACT_TYPES.has(entry.type));
}

/** Whether this version knows the entry type. */
export function isKnownType(type: string): boolean {
  return NODE_TYPES.has(type) || FACT_TYPES.has(type);
}

/** The fields of an entry that are not its own. */
export const STAMP_FIELDS: ReadonlySet<string> = new Set([
  "id",
  "parentId",
  "timestamp",
  "seq",
  "by",
  "run",
  "inherited",
]);

/** The own fields of an entry: all but its stamp. */
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

/** About how many characters an entry takes as JSON; counted without writing it. */
export function entryCharacters(entry: Entry): number {
  return charactersIn(entry);
}

/** What is stored nests no deeper than `JSON_DEPTH_MAX`. */
function charactersIn(value: unknown): number {
  if (typeof value === "string") return value.length + VALUE_CHARACTERS;
  if (typeof value !== "object" || value === null) return VALUE_CHARACTERS;
  let characters = VALUE_CHARACTERS;
  if (Array.isArray(value)) for (const item of value) characters += charactersIn(item);
  else for (const key in value) characters += key.length + charactersIn((value as JsonObject)[key]);
  return characters;
}

/** What a value takes beside its text. */
const VALUE_CHARACTERS = 8;
