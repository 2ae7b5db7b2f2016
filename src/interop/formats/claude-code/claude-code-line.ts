import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Entry } from "../../../session/log/entry.ts";
import type { AssistantMessage } from "../../../session/message.ts";
import type { ForeignLine } from "../foreign-format.ts";
import { asUuid, uuidFrom } from "../foreign-id.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields } from "../foreign-values.ts";
import { foreignRest, type JsonPatch, diffJson, applyPatch } from "../json-patch.ts";
import { blockOfResult, blocksOfAnswer, blocksOfContent, envelopeOfAnswer } from "./claude-code-message.ts";

/** The custom type of messages that the program sends to the model without showing them. */
export const META = "claude-code.meta";

/** The fields that all lines of a file share. */
export interface LineContext {
  readonly sessionId: string;
  /** Directory, version, Git branch and similar. */
  readonly common: JsonObject;
}

/** The parents of an entry's lines. */
export interface LinePosition {
  readonly parentUuid: string | null;
  /** The first line of the first entry that a compaction keeps. */
  readonly keptUuid?: string | null | undefined;
}

/** Makes a line with these fields, by default with the uuid and the parent of its entry. */
type MakeLine = (own: JsonObject, uuid?: string, parentUuid?: string | null) => JsonObject;

/** The lines of an entry as the program would write them; null if the format has no counterpart. */
export function linesOfEntry(
  entry: Entry,
  context: LineContext,
  position: LinePosition,
  report: WriteReport,
): JsonObject[] | null {
  const entryUuid = asUuid(entry.id);
  const line: MakeLine = (own, uuid = entryUuid, parentUuid = position.parentUuid) => ({
    parentUuid,
    isSidechain: false,
    ...own,
    uuid,
    timestamp: entry.timestamp,
    ...context.common,
    sessionId: context.sessionId,
  });
  const said = (content: JsonValue, own: JsonObject = {}): JsonObject[] => [
    line({ type: "user", message: { role: "user", content }, ...own }),
  ];
  switch (entry.type) {
    case "message":
      if (entry.message.role === "user") return said(blocksOfContent(entry.message.content, report));
      if (entry.message.role === "tool") return said([blockOfResult(entry.message, report)]);
      if (entry.message.role !== "assistant") return null;
      return linesOfAnswer(entryUuid, entry.message, line, report);
    case "custom_message":
      return said(blocksOfContent(entry.content, report), { isMeta: true });
    case "branch_summary":
      if (entry.summary.trim() === "") return null;
      return said(`Another branch of this conversation was left. What happened there:\n\n${entry.summary}`, {
        isMeta: true,
      });
    case "compaction":
      return linesOfCompaction(entryUuid, entry, line, position);
    case "session_info":
      return [{ type: "custom-title", customTitle: entry.name, sessionId: context.sessionId }];
    default:
      return null;
  }
}

/** An informational line without content of the conversation, which makes its parent the leaf. */
export function leafMark(
  {
    uuid,
    parentUuid,
    timestamp,
  }: { readonly uuid: string; readonly parentUuid: string | null; readonly timestamp: string },
  { common, sessionId }: LineContext,
): JsonObject {
  const said = { type: "system", subtype: "informational", content: LEAF_MARK, isMeta: false, level: "info" };
  return { parentUuid, isSidechain: false, ...said, uuid, timestamp, ...common, sessionId };
}

/** Whether a line is one that `leafMark` made. */
export function isLeafMark(value: JsonObject): boolean {
  return value.type === "system" && value.content === LEAF_MARK;
}

const LEAF_MARK = "The session goes on from here.";

/** The patches from the lines of `linesOfEntry` to the original lines, and the positions of `others` among them. */
export function patchesOfLines(
  originals: readonly ForeignLine[],
  lines: readonly JsonObject[],
  others: readonly ForeignLine[],
): JsonValue | undefined {
  const rests = originals.map(({ value }, index) => diffJson(value, lines[index] ?? {}) ?? null);
  let passed = 0;
  const before = originals.map(({ number }) => {
    while ((others[passed]?.number ?? number) < number) passed++;
    return passed;
  });
  if (passed === 0 && originals.length === lines.length && rests.every((rest) => rest === null)) return undefined;
  return { lines: rests, ...(passed === 0 ? {} : { before }) } as unknown as JsonValue;
}

/** How many other lines preceded each line of an answer in the imported file. */
export function linesBefore(entry: Entry): readonly unknown[] {
  const rest = foreignRest(entry, "claude-code");
  return isFields(rest) && Array.isArray(rest.before) ? rest.before : [];
}

/** The lines of an entry, restored with the patches that an import stored. A null patch means an unchanged line. */
export function restoreLines(lines: readonly JsonObject[], entry: Entry): readonly JsonObject[] {
  const rest = foreignRest(entry, "claude-code") as { readonly lines?: readonly (JsonPatch | null)[] } | undefined;
  if (!Array.isArray(rest?.lines)) return lines;
  return rest.lines.map((each, index) => applyPatch<JsonObject>(lines[index] ?? {}, each ?? undefined));
}

/** One line for each block, as the program writes them: each with the id and the usage of the whole answer. */
function linesOfAnswer(uuid: string, message: AssistantMessage, line: MakeLine, report: WriteReport): JsonObject[] {
  const envelope = envelopeOfAnswer(message, `msg_${uuid.replaceAll("-", "").slice(0, 24)}`);
  const cost = message.cost === undefined ? {} : { costUSD: message.cost };
  const failed = message.stopReason === "error" ? { isApiErrorMessage: true } : {};
  const blocks = blocksOfAnswer(message, report);
  let last: string | undefined;
  return (blocks.length === 0 ? [{ type: "text", text: "" }] : blocks).map((block, index) => {
    const own = index === 0 ? uuid : uuidFrom(`${uuid}.${index}`);
    const said = { type: "assistant", message: { content: [block], ...envelope }, ...cost, ...failed };
    const whole = line(said, own, last);
    last = own;
    return whole;
  });
}

function linesOfCompaction(
  uuid: string,
  entry: Extract<Entry, { type: "compaction" }>,
  line: MakeLine,
  { parentUuid, keptUuid }: LinePosition,
): JsonObject[] {
  const summaryUuid = uuidFrom(`${uuid}.summary`);
  const keeps = typeof keptUuid === "string" && parentUuid !== null;
  const segment = keeps ? { headUuid: keptUuid, anchorUuid: summaryUuid, tailUuid: parentUuid } : null;
  const boundary = {
    logicalParentUuid: parentUuid,
    type: "system",
    subtype: "compact_boundary",
    content: "Conversation compacted",
    isMeta: false,
    level: "info",
    compactMetadata: {
      trigger: "manual",
      preTokens: entry.tokensBefore,
      ...(segment === null ? {} : { preservedSegment: segment }),
    },
  };
  const message = { role: "user", content: entry.summary };
  const summary = { type: "user", message, isVisibleInTranscriptOnly: true, isCompactSummary: true };
  return [line(boundary, uuid, null), line(summary, summaryUuid, uuid)];
}
