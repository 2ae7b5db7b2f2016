import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Entry } from "../../../session/log/entry.ts";
import type { AssistantMessage } from "../../../session/message.ts";
import type { ForeignLine } from "../foreign-format.ts";
import { asUuid, uuidFrom } from "../foreign-id.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields } from "../foreign-values.ts";
import { foreignRest, type Rest, restOf, withRest } from "../rest-of.ts";
import { blockOfResult, blocksOfAnswer, blocksOfContent, envelopeOfAnswer } from "./claude-code-message.ts";

/** The `custom_message` that a message becomes which the program tells the model and does not show. */
export const META = "claude-code.meta";

/** What every line of a file says. */
export interface LineContext {
  readonly sessionId: string;
  /** The fields that most lines of the file share: directory, version, branch. */
  readonly common: JsonObject;
}

/** Where an entry's lines hang. */
export interface LinePosition {
  readonly parentUuid: string | null;
  /** The line that stands for the first entry that a compaction keeps. */
  readonly keptUuid?: string | null | undefined;
}

/** A line that says something, by default with the uuid and the parent of its entry. */
type MakeLine = (own: JsonObject, uuid?: string, parentUuid?: string | null) => JsonObject;

/** The lines of an entry as the program would write them; null for one that it cannot say. */
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

/** A line that says nothing and moves the session to its parent. */
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

/** What the lines of a file say that those of `linesOfEntry` do not, and where `others` stood among them. */
export function restOfLines(
  originals: readonly ForeignLine[],
  lines: readonly JsonObject[],
  others: readonly ForeignLine[],
): JsonValue | undefined {
  const rests = originals.map(({ value }, index) => restOf(value, lines[index] ?? {}) ?? null);
  let passed = 0;
  const before = originals.map(({ number }) => {
    while ((others[passed]?.number ?? number) < number) passed++;
    return passed;
  });
  if (passed === 0 && originals.length === lines.length && rests.every((rest) => rest === null)) return undefined;
  return { lines: rests, ...(passed === 0 ? {} : { before }) } as unknown as JsonValue;
}

/** How many other lines stood before each line of an answer, as an import kept it. */
export function linesBefore(entry: Entry): readonly unknown[] {
  const rest = foreignRest(entry, "claude-code");
  return isFields(rest) && Array.isArray(rest.before) ? rest.before : [];
}

/** The lines of an entry with what an import kept beside it. Null inside stands for a line that needs nothing. */
export function withRestOfLines(lines: readonly JsonObject[], entry: Entry): readonly JsonObject[] {
  const rest = foreignRest(entry, "claude-code") as { readonly lines?: readonly (Rest | null)[] } | undefined;
  if (!Array.isArray(rest?.lines)) return lines;
  return rest.lines.map((each, index) => withRest<JsonObject>(lines[index] ?? {}, each ?? undefined));
}

/** The program writes a line for each block, all with the id and the usage of the whole answer. */
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
