import { appendFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FileFollower } from "../../src/interop/formats/follow-files.ts";
import { type ForeignFormat, type FormatName, foreignFormat, importFiles } from "../../src/interop/formats/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, linesOf, toldIn, writtenText } from "./foreign-samples.ts";

const SESSION = "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0005";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "follow-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** One turn: a user message, and answers with calls that each have a result. */
interface Turn {
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
}

const turn: fc.Arbitrary<Turn> = fc.record({
  answers: fc.array(fc.nat(3), { minLength: 1, maxLength: 3 }),
  stops: fc.constantFrom("all", "last", "none"),
  early: fc.boolean(),
  others: fc.nat(2),
  back: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 2 })),
});

/** The lines of a file of Claude Code with these turns. */
function claudeCode(turns: readonly Turn[]): string[] {
  const lines: string[] = [];
  const ends: (string | null)[] = [null];
  let leaf: string | null = null;
  const add = (own: object, parentUuid: string | null = leaf): string => {
    const uuid = `line-${lines.length}`;
    const timestamp = new Date(Date.UTC(2025, 0, 1) + lines.length * 1000).toISOString();
    const stamp = { uuid, timestamp, cwd: "/srv/shop", sessionId: SESSION, version: "2" };
    lines.push(JSON.stringify({ parentUuid, isSidechain: false, ...own, ...stamp }));
    leaf = uuid;
    return uuid;
  };
  const other = (number: number): void => {
    if (number === 0) lines.push(JSON.stringify({ type: "summary", summary: `Title ${lines.length}`, leafUuid: leaf }));
    else if (number === 1) add({ type: "progress", data: { output: "at it" } });
    else add({ type: "attachment", attachment: { type: "queued_command", prompt: `Faster ${lines.length}.` } });
  };
  for (const [number, { answers, stops, early, others, back }] of turns.entries()) {
    if (back > 0) leaf = ends.at(-Math.min(back + 1, ends.length)) ?? null;
    add({ type: "user", message: { role: "user", content: `Question ${number}.` } });
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
          pending.push(() => {
            const content = [{ type: "tool_result", tool_use_id: callId, content: `Result ${callId}.` }];
            add({ type: "user", message: { role: "user", content } }, own);
          });
        if (early) for (const result of pending.splice(0)) result();
        if (!last) for (let index = 0; index < others; index++) other((number + part + index) % 3);
      }
      for (const result of pending.reverse()) result();
    }
    ends.push(leaf);
  }
  return lines;
}

/** The same as a rollout of Codex, without branches. */
function codex(turns: readonly Turn[]): string[] {
  const lines: string[] = [];
  let spent = 0;
  const add = (type: string, payload: object): void => {
    const timestamp = new Date(Date.UTC(2025, 0, 1) + lines.length * 1000).toISOString();
    lines.push(JSON.stringify({ timestamp, type, payload }));
  };
  const item = (payload: object): void => add("response_item", payload);
  const says = (role: string, text: string): void => item({ type: "message", role, content: [{ type: "text", text }] });
  add("session_meta", { id: SESSION, cwd: "/srv/shop", cli_version: "0.40.0" });
  for (const [number, { answers, early, others }] of turns.entries()) {
    says("user", `Question ${number}.`);
    for (const [at, calls] of answers.entries()) {
      item({ type: "reasoning", summary: [{ type: "summary_text", text: `Thought ${number}.${at}.` }] });
      for (let index = 0; index < others; index++)
        add("event_msg", { type: "agent_reasoning", text: `${number}.${at}.` });
      says("assistant", `Answer ${number}.${at}.`);
      const ids = Array.from({ length: calls }, (_, call) => `call-${number}-${at}-${call}`);
      for (const call_id of ids) item({ type: "function_call", name: "look", arguments: "{}", call_id });
      spent += 10 + calls;
      const usage = { input_tokens: 10, output_tokens: calls, total_tokens: 10 + calls };
      const total = { ...usage, total_tokens: spent };
      const count = () =>
        add("event_msg", { type: "token_count", info: { total_token_usage: total, last_token_usage: usage } });
      if (!early) count();
      for (const call_id of ids) item({ type: "function_call_output", call_id, output: `Result ${call_id}.` });
      if (early) count();
    }
  }
  return lines;
}

/** The same as a session of pi, where each message is one line. */
function pi(turns: readonly Turn[]): string[] {
  const header = { type: "session", version: 3, id: SESSION, timestamp: "2025-01-01T00:00:00.000Z", cwd: "/srv/shop" };
  const lines = [JSON.stringify(header)];
  const ends: (string | null)[] = [null];
  let leaf: string | null = null;
  const add = (message: object): void => {
    const id = `line-${lines.length}`;
    const timestamp = new Date(Date.UTC(2025, 0, 1) + lines.length * 1000).toISOString();
    lines.push(JSON.stringify({ type: "message", id, parentId: leaf, timestamp, message }));
    leaf = id;
  };
  for (const [number, { answers, back }] of turns.entries()) {
    if (back > 0) leaf = ends.at(-Math.min(back + 1, ends.length)) ?? null;
    add({ role: "user", content: `Question ${number}.` });
    for (const [at, count] of answers.entries()) {
      const ids = Array.from({ length: count }, (_, call) => `call-${number}-${at}-${call}`);
      const calls = ids.map((id) => ({ type: "toolCall", id, name: "look", arguments: {} }));
      const usage = { input: 10, output: 1 + count, cost: { total: 0.5 } };
      add({ role: "assistant", content: [{ type: "text", text: `Answer ${number}.${at}.` }, ...calls], usage });
      for (const toolCallId of ids)
        add({ role: "toolResult", toolCallId, toolName: "look", content: `${toolCallId}.` });
    }
    ends.push(leaf);
  }
  return lines;
}

/** The interruptions while a file is followed. */
type Interruption =
  /** The program writes this share of the rest of its file; it may end in the middle of a line. */
  | { readonly kind: "write"; readonly part: number }
  /** The follower polls after so many milliseconds. */
  | { readonly kind: "look"; readonly afterMs: number }
  | { readonly kind: "restart" | "import" | "replace" | "shorten" };

const interruption: fc.Arbitrary<Interruption> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.double({ min: 0.01, max: 0.5, noNaN: true }).map((part) => ({ kind: "write" as const, part })),
  },
  { weight: 3, arbitrary: fc.constantFrom(10, 1000).map((afterMs) => ({ kind: "look" as const, afterMs })) },
  { weight: 3, arbitrary: fc.constant({ kind: "look" as const, afterMs: 5000 }) },
  fc.constant({ kind: "look" as const, afterMs: 11 * 60 * 1000 }),
  fc.constantFrom("restart", "import", "replace", "shorten").map((kind) => ({ kind }) as Interruption),
);

async function importAll(store: SessionStore, format: ForeignFormat, path: string): Promise<void> {
  for await (const step of importFiles({ store, userId: "ana" }, { format, path }))
    expect(step.report.lostLines.filter(({ reason }) => !reason.startsWith("it is cut off"))).toEqual([]);
}

/** The messages of a session, its cost, and its export. */
async function sumOf(store: SessionStore, format: ForeignFormat) {
  const [listed] = (await store.list()).items;
  const sessionId = listed?.header.id ?? "";
  const head = await store.head(sessionId);
  // A title is at the position where it was first read, and the answer around it where it was complete.
  const lines = linesOf(await writtenText(format, store, sessionId)).toSorted();
  return { told: await toldIn(store, sessionId), usage: head?.usage, cost: head?.cost, name: head?.name, lines };
}

async function follows(
  format: ForeignFormat,
  lines: readonly string[],
  interruptions: readonly Interruption[],
): Promise<void> {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const place = await mkdtemp(join(directory, "run-"));
  const path = join(place, format.name === "codex" ? `rollout-${SESSION}.jsonl` : `${SESSION}.jsonl`);
  await using store = openMemoryStore();
  const failures: unknown[] = [];
  const start = () =>
    new FileFollower(
      { store, userId: "ana" },
      [{ format, path: place }],
      { signal: new AbortController().signal, onFailure: (error) => failures.push(error) },
      Date.now(),
    );
  let follower = start();
  let nowMs = Date.now();
  let written = 0;
  const look = async (afterMs: number): Promise<void> => {
    nowMs += afterMs;
    // New files are searched for in some of the polls only.
    for (let step = 0; step < 3; step++) await follower.poll(nowMs);
  };
  await writeFile(path, "");
  for (const each of interruptions) {
    if (each.kind === "write") {
      const until = Math.min(bytes.length, written + Math.ceil(each.part * (bytes.length - written)));
      await appendFile(path, bytes.subarray(written, until));
      written = until;
    } else if (each.kind === "look") await look(each.afterMs);
    else if (each.kind === "restart") follower = start();
    else if (each.kind === "import") await importAll(store, format, path);
    else if (each.kind === "replace") {
      await writeFile(join(place, "new"), bytes.subarray(0, written));
      await rename(join(place, "new"), path);
    } else {
      written = Math.floor(written / 2);
      await writeFile(path, bytes.subarray(0, written));
    }
  }
  await appendFile(path, bytes.subarray(written));
  await look(10);
  await look(5000);
  await look(11 * 60 * 1000);
  expect(failures).toEqual([]);
  await using whole = openMemoryStore();
  await importAll(whole, format, path);
  const expected = await sumOf(whole, format);
  expect(await sumOf(store, format)).toEqual(expected);
  await importAll(store, format, path);
  expect(await sumOf(store, format)).toEqual(expected);
  const [listed] = (await store.list()).items;
  const before = await entriesOf(store, listed?.header.id ?? "");
  await importAll(store, format, path);
  expect(await entriesOf(store, listed?.header.id ?? "")).toEqual(before);
}

const PROGRAMS: readonly (readonly [FormatName, (turns: readonly Turn[]) => string[]])[] = [
  ["claude-code", claudeCode],
  ["codex", codex],
  ["pi", pi],
];

/** Cases that random runs have found. */
const FOUND: readonly (readonly [string, readonly Interruption[]])[] = [
  [
    "is shortened and idle for long before it is complete again",
    [
      { kind: "write", part: 0.23 },
      { kind: "look", afterMs: 5000 },
      { kind: "shorten" },
      { kind: "look", afterMs: 10 },
      { kind: "look", afterMs: 11 * 60 * 1000 },
    ],
  ],
  [
    "is imported while an answer is buffered",
    [{ kind: "write", part: 0.2 }, { kind: "look", afterMs: 10 }, { kind: "import" }],
  ],
];

test.for(FOUND)("a file that %s becomes the same session as by one import", async ([, interruptions]) => {
  const turns: Turn[] = [
    { answers: [2], stops: "all", early: false, others: 1, back: 0 },
    { answers: [1, 1, 2], stops: "last", early: true, others: 2, back: 0 },
  ];
  for (const [name, write] of PROGRAMS) {
    // Wherever the writes end.
    for (let more = 0; more < 10; more++) {
      const first: Interruption = { kind: "write", part: 0.02 + more / 40 };
      await follows(foreignFormat(name), write(turns), [first, ...interruptions]);
    }
  }
});

test("a follower learns which entries an import has added even if its own append was already stored", async () => {
  const turns: Turn[] = [{ answers: [0, 1], stops: "all", early: false, others: 2, back: 0 }];
  await follows(foreignFormat("claude-code"), claudeCode(turns), [
    { kind: "write", part: 0.059535333978702816 },
    { kind: "write", part: 0.060247167868177146 },
    { kind: "look", afterMs: 10 },
    { kind: "write", part: 0.0855263157894737 },
    { kind: "write", part: 0.3803239352129575 },
    { kind: "import" },
  ]);
});

test.for(PROGRAMS)(
  "a followed file of %s becomes the same session as by one import, however it is interrupted",
  async ([name, write]) => {
    const turns = fc.array(turn, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(turns, fc.array(interruption, { maxLength: 16 }), (some, interruptions) =>
        follows(foreignFormat(name), write(some), interruptions),
      ),
      { numRuns: name === "claude-code" ? 60 : 20 },
    );
  },
);
