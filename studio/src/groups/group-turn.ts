import type { Entry } from "../../../src/session/log/entry.ts";
import type { Message } from "../../../src/session/message.ts";
import { spokenText } from "../request/spoken-text.ts";

/** A turn of a session with several agents: a message, a step towards one, a pass, or a note. */
export interface GroupTurn {
  readonly id: string;
  /** The agent; null for people and for entries of no agent. */
  readonly agent: string | null;
  /** `work` is a step towards an answer; `note` is a summary or an entry of an extension. */
  readonly kind: "said" | "work" | "passed" | "refused" | "failed" | "ended" | "note";
  readonly role: Message["role"] | null;
  readonly text: string;
  readonly calls: readonly string[];
  readonly timestamp: string;
  readonly model: string | null;
  readonly tokens: number;
  readonly cost: number;
  readonly visibleTo: readonly string[] | null;
  readonly hiddenFrom: readonly string[] | null;
}

type Fields = { readonly [key: string]: unknown };

/** The metadata key of groups. Its content is written by groups, so it is validated before use. */
const GROUP_KEY = "group";

const ENDS: Readonly<Record<string, string>> = {
  complete: "The conversation is complete.",
  "max-rounds": "The conversation ended after its last round.",
  "all-passed": "The conversation ended: all agents passed.",
};

/** The group turn of an entry; null for an entry without one. */
export function groupTurnOf(entry: Entry): GroupTurn | null {
  switch (entry.type) {
    case "message":
      return messageTurn(entry.message, entry);
    case "compaction":
    case "branch_summary":
      return { ...nobody(entry, "note"), text: entry.summary, ...visibilityOf(fieldsOf(entry.details)) };
    case "custom_message":
      return { ...nobody(entry, "note"), text: spokenText(entry.content), ...visibilityOf(fieldsOf(entry.details)) };
    case "custom":
      return entry.customType === GROUP_KEY ? noteTurn(fieldsOf(entry.data), entry) : null;
    default:
      return null;
  }
}

function messageTurn(message: Message, entry: Entry): GroupTurn {
  const metadata = fieldsOf(message.metadata);
  const assistant = message.role === "assistant" ? message : null;
  const failed = assistant?.stopReason === "error" || (message.role === "tool" && message.isError === true);
  const step = message.role === "tool" || fieldsOf(metadata[GROUP_KEY]).kind === "work";
  const error = fieldsOf(metadata.error).message;
  const text = spokenText(message.content);
  return {
    ...nobody(entry, failed && !step ? "failed" : step ? "work" : "said"),
    agent: message.agent ?? null,
    role: message.role,
    text: text === "" && typeof error === "string" ? error : text,
    calls: (assistant?.toolCalls ?? []).map(({ name }) => name),
    model: assistant?.model ?? null,
    tokens: assistant?.usage?.totalTokens ?? 0,
    cost: assistant?.cost ?? 0,
    ...visibilityOf(metadata),
  };
}

function noteTurn(data: Fields, entry: Entry): GroupTurn | null {
  const agent = typeof data.agent === "string" ? data.agent : null;
  if (data.kind === "ended") {
    return { ...nobody(entry, "ended"), text: ENDS[String(data.reason)] ?? "The conversation ended." };
  }
  if (data.kind !== "passed" && data.kind !== "refused") return null;
  const spent = { tokens: numberOf(fieldsOf(data.usage).totalTokens), cost: numberOf(data.cost) };
  const error = fieldsOf(data.error).message;
  return { ...nobody(entry, data.kind), agent, text: typeof error === "string" ? error : "", ...spent };
}

function nobody({ id, timestamp }: Entry, kind: GroupTurn["kind"]): GroupTurn {
  const unseen = { visibleTo: null, hiddenFrom: null };
  return {
    id,
    timestamp,
    kind,
    agent: null,
    role: null,
    text: "",
    calls: [],
    model: null,
    tokens: 0,
    cost: 0,
    ...unseen,
  };
}

function visibilityOf({ visibleTo, hiddenFrom }: Fields): Pick<GroupTurn, "visibleTo" | "hiddenFrom"> {
  return { visibleTo: namesIn(visibleTo), hiddenFrom: namesIn(hiddenFrom) };
}

/**
 * A text counts as a list with one name. Any other value that is not a list hides the turn from all, as an empty list
 * does.
 */
function namesIn(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
