import fc from "fast-check";
import type { FormatName } from "../../src/interop/formats/index.ts";

/** The id of the session in every generated file. */
export const SESSION = "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0005";

/** One turn: a user message, and answers with calls that each have a result. */
export interface Turn {
  /** How many calls each answer has; the last answer has none. */
  readonly answers: readonly number[];
  /** Which lines hold the stop reason of an answer. */
  readonly stops: "all" | "last" | "none";
  /** Whether results are between the lines of their answer. */
  readonly early: boolean;
  /** Other lines between those of an answer. */
  readonly others: number;
  /** How many turns before the last one it goes back to; 0 for none. */
  readonly back: number;
  /** Whether a request to the API fails before the first answer. */
  readonly failed: boolean;
  /** Whether the last result of each answer is after the first line of the next answer. */
  readonly late: boolean;
  /** Whether a sub-agent writes lines to the file. */
  readonly helped: boolean;
  /** Whether the conversation is compacted after the turn: with a kept part, without one, or not at all. */
  readonly compacted: "keeping" | "whole" | "no";
}

export const turn: fc.Arbitrary<Turn> = fc.record({
  answers: fc.array(fc.nat(3), { minLength: 1, maxLength: 3 }),
  stops: fc.constantFrom("all", "last", "none"),
  early: fc.boolean(),
  others: fc.nat(2),
  back: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 2 })),
  failed: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  late: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  helped: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  compacted: fc.oneof({ weight: 6, arbitrary: fc.constant("no") }, fc.constantFrom("keeping", "whole")),
});

/** A turn of a user message and answers with so many calls, without further lines. */
export const PLAIN: Omit<Turn, "answers"> = {
  ...{ stops: "all", early: false, others: 0, back: 0, failed: false, late: false, helped: false, compacted: "no" },
};

const timeOf = (line: number): string => new Date(Date.UTC(2025, 0, 1) + line * 1000).toISOString();

/** The lines of a file of Claude Code with these turns. */
function claudeCode(turns: readonly Turn[]): string[] {
  const lines: string[] = [];
  const ends: (string | null)[] = [null];
  let leaf: string | null = null;
  const write = (own: object, parentUuid: string | null, isSidechain: boolean): string => {
    const uuid = `line-${lines.length}`;
    const stamp = { uuid, timestamp: timeOf(lines.length), cwd: "/srv/shop", sessionId: SESSION, version: "2" };
    lines.push(JSON.stringify({ parentUuid, isSidechain, ...own, ...stamp }));
    return uuid;
  };
  const add = (own: object, parentUuid: string | null = leaf): string => (leaf = write(own, parentUuid, false));
  const said = (content: unknown) => ({ type: "user", message: { role: "user", content } });
  const other = (number: number): void => {
    if (number === 0) lines.push(JSON.stringify({ type: "summary", summary: `Title ${lines.length}`, leafUuid: leaf }));
    else if (number === 1) add({ type: "progress", data: { output: "at it" } });
    else add({ type: "attachment", attachment: { type: "queued_command", prompt: `Faster ${lines.length}.` } });
  };
  for (const [number, each] of turns.entries()) {
    const { answers, stops, early, others, back, failed, late, helped, compacted } = each;
    let waiting: (() => void) | undefined;
    if (back > 0) leaf = ends.at(-Math.min(back + 1, ends.length)) ?? null;
    const first = add(said(`Question ${number}.`));
    let helper = helped ? write(said(`Help ${number}.`), null, true) : null;
    if (failed) {
      const message = { id: `failed-${number}`, role: "assistant", model: "<synthetic>" };
      const content = [{ type: "text", text: "API Error: overloaded" }];
      add({
        type: "assistant",
        message: { ...message, content, stop_reason: "stop_sequence" },
        isApiErrorMessage: true,
      });
    }
    for (const [at, calls] of answers.entries()) {
      const id = `msg-${number}-${at}`;
      const count = 1 + calls;
      const pending: (() => void)[] = [];
      for (let part = 0; part < count; part++) {
        const last = part === count - 1;
        const callId = `call-${number}-${at}-${part}`;
        const block =
          part === 0
            ? { type: "text", text: `Answer ${number}.${at}.` }
            : { type: "tool_use", id: callId, name: "Read", input: { part } };
        const stop_reason = stops === "all" || (stops === "last" && last) ? "tool_use" : null;
        // The program knows the usage of an answer only at its end.
        const usage = { input_tokens: 100, output_tokens: stops === "all" || last ? 10 + calls : 1 };
        const message = { id, role: "assistant", model: "m", content: [block], stop_reason, usage };
        const own = add({ type: "assistant", message, costUSD: usage.output_tokens / 8 });
        if (part > 0)
          pending.push(() =>
            add(said([{ type: "tool_result", tool_use_id: callId, content: `Result ${callId}.` }]), own),
          );
        if (early) for (const result of pending.splice(0)) result();
        if (part === 0) waiting?.();
        if (part === 0) waiting = undefined;
        if (!last) for (let index = 0; index < others; index++) other((number + part + index) % 3);
        if (helper !== null) {
          const spent = { input_tokens: 100, output_tokens: lines.length };
          const helping = { id: `help-${number}`, role: "assistant", model: "m", content: [block], usage: spent };
          helper = write({ type: "assistant", message: helping }, helper, true);
        }
      }
      if (late && at < answers.length - 1) waiting = pending.pop();
      for (const result of pending.reverse()) result();
    }
    waiting?.();
    if (compacted !== "no") {
      const segment = { headUuid: first, anchorUuid: `line-${lines.length + 1}`, tailUuid: leaf };
      const compactMetadata = { preTokens: 500, ...(compacted === "keeping" ? { preservedSegment: segment } : {}) };
      const subtype = { type: "system", subtype: "compact_boundary", logicalParentUuid: leaf, compactMetadata };
      const boundary = add(subtype, null);
      // The program repeats lines that it has written before, and adds notes.
      if (others > 0) lines.push(lines.find((line) => line.includes(`"${first}","timestamp"`)) as string);
      if (others > 1) add({ type: "progress", data: { output: "compacting" } });
      add({ ...said(`Summary ${number}.`), isCompactSummary: true, isVisibleInTranscriptOnly: true }, boundary);
    }
    ends.push(leaf);
  }
  return lines;
}

/** The same as a rollout of Codex, whose only branches are turns that were rolled back. */
function codex(turns: readonly Turn[]): string[] {
  const lines: string[] = [];
  let spent = 0;
  /** How many turns can be rolled back. */
  let taken = 0;
  let counted: object | null = null;
  const add = (type: string, payload: object): void => {
    lines.push(JSON.stringify({ timestamp: timeOf(lines.length), type, payload }));
  };
  const item = (payload: object): void => add("response_item", payload);
  const saying = (role: string, text: string) => ({ type: "message", role, content: [{ type: "text", text }] });
  add("session_meta", { id: SESSION, cwd: "/srv/shop", cli_version: "0.40.0" });
  for (const [number, { answers, early, others, back, failed, compacted }] of turns.entries()) {
    if (back > 0 && taken > 0) {
      const count = Math.min(back, taken);
      add("event_msg", { type: "thread_rolled_back", num_turns: count, number });
      taken -= count;
    }
    item(saying("user", `Question ${number}.`));
    taken++;
    if (failed) add("event_msg", { type: "error", message: `Overloaded ${number}.` });
    for (const [at, calls] of answers.entries()) {
      item({ type: "reasoning", summary: [{ type: "summary_text", text: `Thought ${number}.${at}.` }] });
      // A request that begins again after its first items has new rate limits, which come with the last counts.
      if (failed && counted !== null) add("event_msg", { type: "token_count", info: counted, rate_limits: { at } });
      for (let index = 0; index < others; index++)
        add("event_msg", { type: "agent_reasoning", text: `${number}.${at}.` });
      item(saying("assistant", `Answer ${number}.${at}.`));
      const ids = Array.from({ length: calls }, (_, call) => `call-${number}-${at}-${call}`);
      for (const call_id of ids) item({ type: "function_call", name: "look", arguments: "{}", call_id });
      spent += 10 + calls;
      const usage = { input_tokens: 10, output_tokens: calls, total_tokens: 10 + calls };
      const total = { ...usage, total_tokens: spent };
      const info = { total_token_usage: total, last_token_usage: usage };
      const count = () => add("event_msg", { type: "token_count", info });
      counted = info;
      if (!early) count();
      for (const call_id of ids) item({ type: "function_call_output", call_id, output: `Result ${call_id}.` });
      if (early) count();
    }
    if (compacted === "no") continue;
    const kept = compacted === "keeping" ? [saying("user", `Question ${number}.`)] : [];
    add("compacted", { message: "", replacement_history: [...kept, saying("user", `Summary ${number}.`)] });
    taken = 0;
  }
  return lines;
}

/** The same as a session of pi, where each message is one line. */
function pi(turns: readonly Turn[]): string[] {
  const lines = [JSON.stringify({ type: "session", version: 3, id: SESSION, timestamp: timeOf(0), cwd: "/srv/shop" })];
  const ends: (string | null)[] = [null];
  let leaf: string | null = null;
  const add = (own: object): string => {
    const id = `line-${lines.length}`;
    lines.push(JSON.stringify({ ...own, id, parentId: leaf, timestamp: timeOf(lines.length) }));
    leaf = id;
    return id;
  };
  const says = (message: object): string => add({ type: "message", message });
  for (const [number, { answers, back, failed, compacted }] of turns.entries()) {
    if (back > 0) leaf = ends.at(-Math.min(back + 1, ends.length)) ?? null;
    const first = says({ role: "user", content: `Question ${number}.` });
    if (failed) says({ role: "assistant", content: [], stopReason: "error", errorMessage: "Overloaded." });
    for (const [at, count] of answers.entries()) {
      const ids = Array.from({ length: count }, (_, call) => `call-${number}-${at}-${call}`);
      const calls = ids.map((id) => ({ type: "toolCall", id, name: "look", arguments: {} }));
      const usage = { input: 10, output: 1 + count, totalTokens: 11 + count, cost: { total: 0.5 } };
      says({ role: "assistant", content: [{ type: "text", text: `Answer ${number}.${at}.` }, ...calls], usage });
      for (const toolCallId of ids)
        says({ role: "toolResult", toolCallId, toolName: "look", content: `${toolCallId}.` });
    }
    if (compacted !== "no") {
      const firstKeptEntryId = compacted === "keeping" ? first : `line-${lines.length}`;
      add({ type: "compaction", summary: `Summary ${number}.`, firstKeptEntryId, tokensBefore: 500 });
    }
    ends.push(leaf);
  }
  return lines;
}

/** The programs, each with what writes the lines of its file. */
export const PROGRAMS: readonly (readonly [FormatName, (turns: readonly Turn[]) => string[]])[] = [
  ["claude-code", claudeCode],
  ["codex", codex],
  ["pi", pi],
];
