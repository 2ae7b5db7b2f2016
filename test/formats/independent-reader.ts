/**
 * Reads the files of other programs as docs/formats describes, and shares no code with the readers of
 * src/interop/formats: what both find in a file must be the same.
 */

/** The content of a file. */
export interface IndependentReading {
  /** The context, in order: `user`, `answer`, `call` and `result` with their texts, and `summary`. */
  readonly told: readonly string[];
  /** All tokens that were spent, by the counters of the program. */
  readonly tokens: number;
  /** How many lines it has; in version 4 of pi, how many records, of which a line holds one or more. */
  readonly lines: number;
  /** How many of them are not a JSON object or list. */
  readonly broken: number;
}

/** The result of a format's reader. */
type Found = Pick<IndependentReading, "told" | "tokens">;

// biome-ignore lint/suspicious/noExplicitAny: a file may hold any value.
type Value = any;

/** One message, before results are moved to their calls. */
type Said =
  | { readonly kind: "user" | "summary"; readonly text: string }
  | { readonly kind: "answer"; readonly text: string; readonly calls: readonly Call[] }
  | { readonly kind: "result"; readonly id: string; readonly text: string };

interface Call {
  readonly id: string;
  readonly name: string;
}

/** Reads a file of a program; the name is that of its page in docs/formats. */
export function readIndependently(format: string, text: string): IndependentReading {
  if (format === "opencode") {
    const document = JSON.parse(text);
    return { ...opencode(document), lines: document.messages.length, broken: 0 };
  }
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const all = lines.map(parsed);
  const broken = all.filter((value) => value === undefined).length;
  // A repetition of the previous line is ignored.
  const values = all.filter((value, index) => value !== undefined && lines[index] !== lines[index - 1]);
  const count = all.reduce((sum: number, value) => sum + (Array.isArray(value) ? value.length : 1), 0);
  return { ...(READERS[format] as (values: readonly Value[]) => Found)(values), lines: count, broken };
}

const READERS: Readonly<Record<string, (values: readonly Value[]) => Found>> = {
  "claude-code": claudeCode,
  codex,
  pi,
  openrath,
};

/** The value of a line; undefined if it is not JSON. Cached, because tests read the same lines in many files. */
function parsed(line: string): Value {
  if (!known.has(line)) known.set(line, parse(line));
  return known.get(line);
}

const known = new Map<string, Value>();

function parse(line: string): Value {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** The order of the context: each result after its call, without empty answers and without results that have no call. */
function toldOf(said: readonly Said[]): string[] {
  const results: { readonly answer: number; readonly call: number; readonly text: string }[] = [];
  const open = new Map<string, { readonly answer: number; readonly call: number }[]>();
  for (const [answer, each] of said.entries()) {
    if (each.kind === "answer") {
      for (const { id } of each.calls) open.set(id, []);
      for (const [call, { id }] of each.calls.entries()) open.get(id)?.push({ answer, call });
    } else if (each.kind === "result") {
      const place = open.get(each.id)?.shift();
      if (place !== undefined) results.push({ ...place, text: `result ${each.id}: ${each.text}` });
    }
  }
  return said.flatMap((each, answer) => {
    if (each.kind === "result") return [];
    if (each.kind !== "answer") return [`${each.kind}: ${each.text}`];
    const own = results.filter((result) => result.answer === answer).sort((a, b) => a.call - b.call);
    return [
      ...(each.text.trim() === "" ? [] : [`answer: ${each.text}`]),
      ...each.calls.map(({ id, name }) => `call ${id}: ${name}`),
      ...own.map(({ text }) => text),
    ];
  });
}

/** The text of a message; an unknown part is replaced by its kind. */
function textOf(content: Value, partOf: (part: Value) => string | null): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content.map((part) => partOf(part) ?? unknownPart(part)) : [];
  return parts.filter((part) => part !== "").join("|");
}

function unknownPart(part: Value): string {
  return /^[\w.:-]{1,60}$/.test(part?.type) ? `[${part.type}]` : "[unknown part]";
}

function numbers(...values: readonly Value[]): number {
  return values.reduce((sum: number, value) => sum + (typeof value === "number" && value > 0 ? value : 0), 0);
}

/** A node of a tree in a file, and its content. */
interface Node {
  readonly id: string;
  parent: string | null;
  readonly said: readonly Said[];
  /** The first node that a compaction keeps; null: none. */
  readonly keeps?: string | null;
}

/** The context of the path to a node: what follows the last compaction, and what that compaction keeps. */
function pathTold(nodes: ReadonlyMap<string, Node>, leaf: string | null): string[] {
  const path: Node[] = [];
  for (let id = leaf; id !== null; ) {
    const node = nodes.get(id);
    if (node === undefined || path.includes(node)) break;
    path.unshift(node);
    id = node.parent;
  }
  const at = path.findLastIndex(({ keeps }) => keeps !== undefined);
  if (at < 0) return toldOf(path.flatMap(({ said }) => said));
  const [compaction, after] = [path[at] as Node, path.slice(at + 1)];
  const first = path.findIndex(({ id }) => id === compaction.keeps);
  const kept = first < 0 ? [] : path.slice(first, at).filter(({ keeps }) => keeps === undefined);
  return toldOf([...compaction.said, ...kept.flatMap(({ said }) => said), ...after.flatMap(({ said }) => said)]);
}

/** Whether a node is another one or below it. */
function isBelow(nodes: ReadonlyMap<string, Node>, id: string | null, other: string): boolean {
  for (let at = id; at !== null; at = nodes.get(at)?.parent ?? null) if (at === other) return true;
  return false;
}

// docs/formats/claude-code.md

function claudeCode(all: readonly Value[]): Found {
  // Lines of sub-agents in the file of the session that started them are sessions of their own.
  const isAgent = all.find(({ uuid }) => typeof uuid === "string")?.isSidechain === true;
  // A line with a known id is a repetition.
  const seen = new Set<string>();
  const lines = all.filter((line) => {
    if (typeof line.uuid !== "string") return true;
    if (line.isSidechain === true && !isAgent) return false;
    if (seen.has(line.uuid)) return false;
    seen.add(line.uuid);
    return true;
  });
  const nodes = new Map<string, Node>();
  /** The answers by their nodes, their messages and their calls. */
  const byNode = new Map<string | null, ClaudeAnswer>();
  const byMessage = new Map<string, ClaudeAnswer>();
  const byCall = new Map<string, ClaudeAnswer>();
  /** The node of a line: for lines of an answer and its results, the last of them. */
  const nodeOf = new Map<string, string>();
  let before: string | null = null;
  for (const line of lines) {
    if (typeof line.uuid !== "string") continue;
    const parentOf = (): string | null => {
      const named = line.parentUuid ?? line.logicalParentUuid;
      if (typeof named === "string") return nodeOf.get(named) ?? before;
      return line.parentUuid === null ? null : before;
    };
    const blocks: Value[] = Array.isArray(line.message?.content) ? line.message.content : [];
    if (line.type === "assistant" && line.message !== undefined) {
      const id: string = line.message.id ?? line.uuid;
      const known = byMessage.get(id);
      const answer: ClaudeAnswer = known ?? { node: line.uuid, lines: [], results: [] };
      if (known === undefined) {
        byMessage.set(id, answer);
        byNode.set(line.uuid, answer);
        nodes.set(line.uuid, { id: line.uuid, parent: parentOf(), said: [], answer } as Node);
      }
      answer.lines.push(line);
      for (const block of blocks) if (block.type === "tool_use") byCall.set(block.id, answer);
      nodeOf.set(line.uuid, answer.node);
      before = answer.node;
      continue;
    }
    const owner: ClaudeAnswer | undefined = blocks
      .map((block) => (block.type === "tool_result" ? byCall.get(block.tool_use_id) : undefined))
      .find((each) => each !== undefined);
    const parent: string | null = parentOf();
    const summary = lines.find((each) => each.isCompactSummary === true && each.parentUuid === line.uuid);
    if (line.type === "system" && line.subtype === "compact_boundary" && summary !== undefined) {
      const head = line.compactMetadata?.preservedSegment?.headUuid;
      const said: Said[] = [{ kind: "summary", text: claudeText(summary.message.content) }];
      nodes.set(line.uuid, { id: line.uuid, parent, said, keeps: nodeOf.get(head) ?? null });
      nodeOf.set(line.uuid, line.uuid);
      nodeOf.set(summary.uuid, line.uuid);
      before = line.uuid;
      continue;
    }
    if (line.isCompactSummary === true && nodeOf.has(line.uuid)) continue;
    // Other lines below a line of the answer, such as messages queued while the program worked, are between its results.
    const isOther = line.type !== "user" && line.type !== "assistant";
    const among = owner ?? (isOther ? byNode.get(parent) : undefined);
    if (among !== undefined) {
      among.results.push(line);
      // A result after later messages of the same branch does not begin another branch there.
      const isLate = owner !== undefined && isBelow(nodes, before, owner.node);
      before = isLate ? before : among.node;
      nodeOf.set(line.uuid, before as string);
      continue;
    }
    nodes.set(line.uuid, { id: line.uuid, parent, said: claudeSaid(line) });
    nodeOf.set(line.uuid, line.uuid);
    before = line.uuid;
  }
  for (const [id, node] of nodes) {
    const { answer } = node as Node & { answer?: ClaudeAnswer };
    if (answer !== undefined) nodes.set(id, { ...node, said: claudeAnswerSaid(answer) });
  }
  const spent = [...byMessage.values()].map(({ lines: own }) => claudeTokens(own));
  // The program resumes at the latest line that has no children.
  const parents = new Set([...nodes.values()].map(({ parent }) => parent));
  const leaf = [...nodes.keys()].findLast((id) => !parents.has(id)) ?? null;
  return { told: pathTold(nodes, leaf), tokens: numbers(...spent) };
}

interface ClaudeAnswer {
  readonly node: string;
  readonly lines: Value[];
  readonly results: Value[];
}

function claudeAnswerSaid({ lines, results }: ClaudeAnswer): Said[] {
  // Failed answers and results without a call are not part of the context.
  if (lines.some(({ isApiErrorMessage }) => isApiErrorMessage === true)) return results.flatMap(claudeSaid);
  const blocks: Value[] = lines.flatMap(({ message: { content } }) =>
    typeof content === "string" ? [{ type: "text", text: content }] : content,
  );
  const calls = blocks.filter(({ type }) => type === "tool_use").map(({ id, name }) => ({ id, name }));
  const text = claudeText(blocks.filter(({ type }) => type !== "tool_use" && type !== "thinking"));
  return [{ kind: "answer", text, calls }, ...results.flatMap(claudeSaid)];
}

function claudeSaid(line: Value): Said[] {
  if (line.type === "attachment" && line.attachment?.type === "queued_command")
    return [{ kind: "user", text: claudeText(line.attachment.prompt) }];
  if (line.type !== "user" || line.isVisibleInTranscriptOnly === true) return [];
  const content: Value = line.message?.content;
  if (typeof content === "string") return [{ kind: "user", text: content }];
  const blocks: Value[] = Array.isArray(content) ? content : [];
  const isResult = (block: Value) => block.type === "tool_result" && typeof block.tool_use_id === "string";
  const results = blocks.filter(isResult).map((block): Said => {
    return { kind: "result", id: block.tool_use_id, text: claudeText(block.content ?? "") };
  });
  const others = blocks.filter((block) => !isResult(block));
  return others.length === 0 ? results : [...results, { kind: "user", text: claudeText(others) }];
}

function claudeText(content: Value): string {
  return textOf(content, (part) => {
    if (part.type === "text") return part.text;
    const base64 = part.source?.type === "base64";
    if (part.type === "image" && base64) return "<image>";
    return part.type === "document" && base64 ? "<file>" : null;
  });
}

/** Each line of an answer has the usage so far, so the last one has the total. */
function claudeTokens(lines: readonly Value[]): number {
  const usage = lines.at(-1).message.usage ?? {};
  const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = usage;
  return numbers(input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens);
}

// docs/formats/codex.md

function codex(values: readonly Value[]): Found {
  let said: Said[] = [];
  /** The open answer; the next message ends it. */
  let answer: { texts: string[]; calls: Call[] } | null = null;
  const close = () => {
    if (answer !== null) said.push({ kind: "answer", text: answer.texts.join("|"), calls: answer.calls });
    answer = null;
  };
  let tokens = 0;
  /** The usage of a summary that has not been read yet; null: none. */
  let summaryTokens: number | null = null;
  for (const value of values) {
    const item = value.payload ?? value;
    if (value.type === "token_usage_record") {
      close();
      tokens = item.thread_token_usage.total_tokens;
      if (summaryTokens === 0) summaryTokens = item.usage.total_tokens;
    }
    if (value.metadata?.compaction_output === true) {
      summaryTokens ??= 0;
      close();
      continue;
    }
    if (value.type === "compacted") {
      summaryTokens = null;
      close();
      const history: Value[] = item.replacement_history ?? [];
      const own = history.filter((each) => each.type === "message" && each.role === "user" && !codexOwn(each));
      said = [{ kind: "summary", text: own.map(({ content }) => codexText(content)).join("\n\n") }];
      continue;
    }
    if (value.type === "event_msg" && item.type === "token_count" && item.info) {
      close();
      tokens = item.info.total_token_usage.total_tokens;
    }
    if (value.type === "event_msg" && item.type === "thread_rolled_back") {
      close();
      const asked = said.flatMap(({ kind }, index) => (kind === "user" ? [index] : []));
      said = said.slice(0, asked.at(-item.num_turns));
    }
    if (value.type === "event_msg" || (value.payload !== undefined && value.type !== "response_item")) continue;
    const open: { texts: string[]; calls: Call[] } = answer ?? { texts: [], calls: [] };
    switch (item.type) {
      case "message":
        if (item.role === "assistant") {
          open.texts.push(codexText(item.content));
          answer = open;
        } else if (item.role === "user" && !codexOwn(item)) {
          close();
          said.push({ kind: "user", text: codexText(item.content) });
        }
        break;
      case "function_call":
      case "custom_tool_call":
      case "local_shell_call":
        open.calls.push({ id: item.call_id ?? item.id, name: item.name ?? "local_shell" });
        answer = open;
        break;
      case "function_call_output":
      case "custom_tool_call_output":
        close();
        said.push({ kind: "result", id: item.call_id, text: codexText(item.output) });
        break;
      default:
    }
  }
  close();
  // The usage of a summary counts with it.
  return { told: toldOf(said), tokens: tokens - (summaryTokens ?? 0) };
}

function codexText(content: Value): string {
  return textOf(content, (part) => {
    if (typeof part.text === "string") return part.text;
    return /^data:/.test(part.image_url) ? "<image>" : null;
  });
}

/** Messages that Codex writes in the user's name. */
function codexOwn(item: Value): boolean {
  const kinds: Value[] = item.internal_chat_message_metadata_passthrough?.content_item_kinds ?? [];
  if (kinds.length > 0) return !kinds.some((kind) => /^(user|compaction|unknown)\b/.test(kind));
  return /^\s*(<environment_context|<user_instructions|# AGENTS\.md)/.test(codexText(item.content));
}

// docs/formats/pi.md

function pi(values: readonly Value[]): Found {
  const [header] = values;
  const nodes = new Map<string, Node>();
  let leaf: string | null = null;
  /** Labels and names are not nodes: their children are attached to their parents. */
  const standsFor = new Map<string, string | null>();
  let tokens = 0;
  const add = (id: string, named: Value, entry: Value) => {
    if (nodes.has(id) || standsFor.has(id)) return;
    const known =
      typeof named === "string" ? (standsFor.has(named) ? standsFor.get(named) : nodes.get(named)?.id) : named;
    const parent: string | null = known === undefined ? leaf : known;
    if (entry.type === "label" || entry.type === "session_info") {
      standsFor.set(id, parent);
      return;
    }
    tokens += piTokens(entry);
    const kept =
      entry.firstKeptEntryId ?? (entry.firstKeptEntryIndex === undefined ? null : `${entry.firstKeptEntryIndex}`);
    const compacts = entry.type === "compaction" ? { keeps: kept } : {};
    nodes.set(id, { id, parent, said: piSaid(entry), ...compacts });
    leaf = id;
  };
  if (header?.kind === "header") {
    for (const item of values.slice(1).flat()) {
      if (item.kind === "entry") add(item.id, item.parentId, item);
      if (item.kind === "value" && item.namespace === "pi.branch.tip" && item.key === "main") leaf = item.value;
    }
  } else {
    // Version 1 has no ids: an entry is identified by its position, counted from the header.
    for (const [index, entry] of values.entries()) {
      if (entry.type === "session") continue;
      if (typeof entry.id === "string") add(entry.id, entry.parentId, entry);
      else add(`${index}`, undefined, entry);
    }
  }
  return { told: pathTold(nodes, leaf), tokens };
}

function piSaid(entry: Value): Said[] {
  const { message } = entry;
  if (entry.type === "compaction") return [{ kind: "summary", text: entry.summary }];
  if (entry.type === "branch_summary") return [{ kind: "summary", text: entry.summary }];
  if (entry.type === "custom_message") return [{ kind: "user", text: piText(entry.content) }];
  if (entry.type !== "message") return [];
  switch (message?.role) {
    case "user":
    case "custom":
    case "hookMessage":
      return [{ kind: "user", text: piText(message.content) }];
    case "bashExecution":
      return message.excludeFromContext === true ? [] : [{ kind: "user", text: `<command> ${message.command}` }];
    case "toolResult":
      return [{ kind: "result", id: message.toolCallId, text: piText(message.content) }];
    case "assistant": {
      if (message.stopReason === "error") return [];
      const parts: Value[] = message.content;
      const calls = parts.filter(({ type }) => type === "toolCall").map(({ id, name }) => ({ id, name }));
      return [
        { kind: "answer", text: piText(parts.filter(({ type }) => type !== "toolCall" && type !== "thinking")), calls },
      ];
    }
    default:
      return [];
  }
}

function piText(content: Value): string {
  return textOf(content, (part) => (part.type === "text" ? part.text : part.type === "image" ? "<image>" : null));
}

function piTokens({ type, message, usage }: Value): number {
  const spent = type === "compaction" ? usage : message?.role === "assistant" ? message.usage : undefined;
  return numbers(spent?.totalTokens);
}

// docs/formats/opencode.md

/** Parts that are not sent to a model, or are not text. */
const SILENT = /^(step-start|step-finish|snapshot|patch|agent|subtask|retry|compaction|tool|reasoning)$/;

function opencode({ messages }: Value): Found {
  const nodes = new Map<string, Node>();
  let [leaf, tail, tokens]: [string | null, string | null, number] = [null, null, 0];
  for (const { info, parts } of messages as readonly Value[]) {
    if (nodes.has(info.id)) continue;
    const spent = info.tokens ?? {};
    tokens += spent.total ?? numbers(spent.input, spent.output, spent.reasoning, spent.cache?.read, spent.cache?.write);
    const text = textOf(
      parts.filter(({ type }: Value) => !SILENT.test(type)),
      (part) => {
        if (part.type === "text") return part.text;
        if (part.type !== "file") return null;
        return String(part.mime).startsWith("image/") ? "<image>" : "<file>";
      },
    );
    const tools: Value[] = parts.filter(({ type }: Value) => type === "tool");
    const asked: Value = parts.find(({ type }: Value) => type === "compaction");
    let said: Said[] = [];
    if (info.role === "user" && text !== "" && asked === undefined) said = [{ kind: "user", text }];
    else if (info.role === "assistant" && info.summary === true) said = [{ kind: "summary", text }];
    else if (info.role === "assistant" && info.error === undefined) {
      const results = tools.flatMap(({ callID: id, state }): Said[] =>
        state.status === "completed" || state.status === "error"
          ? [{ kind: "result", id, text: state.output ?? state.error }]
          : [],
      );
      said = [
        { kind: "answer", text, calls: tools.map(({ callID, tool }) => ({ id: callID, name: tool })) },
        ...results,
      ];
    }
    nodes.set(info.id, { id: info.id, parent: leaf, said, ...(info.summary === true ? { keeps: tail } : {}) });
    if (asked !== undefined) tail = asked.tail_start_id ?? null;
    leaf = info.id;
  }
  return { told: pathTold(nodes, leaf), tokens };
}

// docs/formats/openrath.md

function openrath(values: readonly Value[]): Found {
  const said = values.flatMap(({ record_type, kind, payload }): Said[] => {
    if (record_type !== "chunk") return [];
    if (kind === "user") return [{ kind, text: payload.content }];
    if (kind === "tool_result") return [{ kind: "result", id: payload.tool_call_id, text: payload.content }];
    if (kind !== "assistant") return [];
    const calls: Value[] = payload.tool_calls ?? [];
    return [
      {
        kind: "answer",
        text: payload.content ?? "",
        calls: calls.map((call) => ({ id: call.id, name: call.function.name })),
      },
    ];
  });
  // Usage is known only for the whole session, and is part of no sum.
  return { told: toldOf(said), tokens: 0 };
}
