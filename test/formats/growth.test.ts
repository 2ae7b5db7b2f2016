import { describe, expect, test } from "vitest";
import {
  type FormatName,
  foreignFormat,
  importForeign,
  readForeign,
  writeForeign,
} from "../../src/interop/formats/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

const TIME = "2025-01-01T00:00:00.000Z";
const user = (content: string) => ({ role: "user", content });

/** Makes a file with so many lines in which each refers to others. */
type Chain = (length: number) => readonly object[];

const list = <T>(length: number, make: (index: number) => T): T[] => Array.from({ length }, (_, index) => make(index));

const piHeader = { type: "session", version: 3, id: "a", timestamp: TIME, cwd: "/srv" };
const codexHeader = { timestamp: TIME, type: "session_meta", payload: { id: "a", timestamp: TIME, cwd: "/srv" } };
const pi = (id: string, parentId: string | null, said: object) => ({ id, parentId, timestamp: TIME, ...said });
const claude = (uuid: string, parentUuid: string | null, said: object) => ({
  ...{ uuid, parentUuid, sessionId: "a", timestamp: TIME },
  ...said,
});
const codex = (type: string, payload: object) => ({ timestamp: TIME, type, payload });
const openrath = (record_type: string, fields: object) => ({ record_type, ...fields });

const CHAINS: Readonly<Record<string, readonly [FormatName, Chain]>> = {
  "aliases of aliases in pi, whose first is looked up in every line": [
    "pi",
    (length) => [
      piHeader,
      ...list(length, (n) => [
        pi(`y${n}`, `y${n + 1}`, { type: "session_info", name: "name" }),
        pi(`m${n}`, "y0", { type: "custom", customType: "x" }),
      ]).flat(),
    ],
  ],
  "labels of labels in pi": [
    "pi",
    (length) => [
      piHeader,
      pi("m", null, { type: "message", message: user("Hello.") }),
      ...list(length, (n) => pi(`l${n}`, n === 0 ? "m" : `l${n - 1}`, { type: "label", targetId: "m", label: "x" })),
    ],
  ],
  "aliases in pi that close a ring": [
    "pi",
    (length) => [
      piHeader,
      ...list(length, (n) => pi(`y${n}`, `y${(n + 1) % length}`, { type: "session_info", name: "name" })),
      ...list(length, (n) => pi(`m${n}`, `y${n}`, { type: "message", message: user("Hello.") })),
    ],
  ],
  "parents in pi": [
    "pi",
    (length) => [
      piHeader,
      ...list(length, (n) => pi(`m${n}`, n === 0 ? null : `m${n - 1}`, { type: "message", message: user("x") })),
    ],
  ],
  "compactions of compactions in pi": [
    "pi",
    (length) => [
      piHeader,
      ...list(length, (n) =>
        pi(`c${n}`, n === 0 ? null : `c${n - 1}`, {
          ...{ type: "compaction", summary: "s", tokensBefore: 1 },
          firstKeptEntryId: n === 0 ? "c0" : `c${n - 1}`,
        }),
      ),
    ],
  ],
  "moves back to the first entry in pi": [
    "pi",
    (length) => [
      piHeader,
      pi("m", null, { type: "message", message: user("Hello.") }),
      ...list(length, (n) => pi(`b${n}`, "m", { type: "message", message: user("x") })),
    ],
  ],
  "parents in Claude Code": [
    "claude-code",
    (length) =>
      list(length, (n) => claude(`u${n}`, n === 0 ? null : `u${n - 1}`, { type: "user", message: user("x") })),
  ],
  "lines of one answer in Claude Code": [
    "claude-code",
    (length) =>
      list(length, (n) =>
        claude(`u${n}`, n === 0 ? null : `u${n - 1}`, {
          type: "assistant",
          message: { id: "one", role: "assistant", content: [{ type: "text", text: "x" }] },
        }),
      ),
  ],
  "sub-agents among the lines of Claude Code, each line on the one before": [
    "claude-code",
    (length) => [
      claude("u", null, { type: "user", message: user("Hello.") }),
      ...list(length, (n) =>
        claude(`s${n}`, n === 0 ? null : `s${n - 1}`, { type: "user", isSidechain: true, message: user("x") }),
      ),
    ],
  ],
  "summaries and boundaries in Claude Code, each on the one before": [
    "claude-code",
    (length) => [
      claude("u", null, { type: "user", message: user("Hello.") }),
      ...list(length, (n) => [
        claude(`b${n}`, null, {
          ...{ type: "system", subtype: "compact_boundary", logicalParentUuid: n === 0 ? "u" : `s${n - 1}` },
          compactMetadata: { preTokens: 1, preservedSegment: { headUuid: n === 0 ? "u" : `b${n - 1}` } },
        }),
        claude(`s${n}`, `b${n}`, { type: "user", isCompactSummary: true, message: user("x") }),
        { type: "summary", summary: `Title ${n}`, leafUuid: `s${n}` },
      ]).flat(),
    ],
  ],
  "many results in one line of Claude Code that has no id": [
    "claude-code",
    (length) => [
      claude("u", null, { type: "user", message: user("Hello.") }),
      {
        ...{ type: "user", sessionId: "a" },
        message: {
          role: "user",
          content: list(length, (n) => ({ type: "tool_result", tool_use_id: `c${n}`, content: "x" })),
        },
      },
    ],
  ],
  "turns that are taken back in Codex": [
    "codex",
    (length) => [
      codexHeader,
      ...list(length, (n) => [
        codex("response_item", { type: "message", role: "user", content: [{ type: "input_text", text: `${n}` }] }),
        codex("event_msg", { type: "thread_rolled_back", num_turns: n % 3, n }),
      ]).flat(),
    ],
  ],
  "items of one answer in Codex": [
    "codex",
    (length) => [
      codexHeader,
      ...list(length, (n) => codex("response_item", { type: "reasoning", summary: [{ text: `${n}` }] })),
    ],
  ],
  "compactions in Codex": [
    "codex",
    (length) => [codexHeader, ...list(length, (n) => codex("compacted", { message: `Summary ${n}` }))],
  ],
  "rows of OpenRath": [
    "openrath",
    (length) => [
      openrath("header", { schema_version: 1, id: "a", created_at: TIME, lineage_kind: "op_fork" }),
      ...list(length, (index) => openrath("chunk", { index, kind: "user", payload: { content: "x" } })),
    ],
  ],
  "calls of one message of opencode": [
    "opencode",
    (length) => [
      {
        info: { id: "ses_a", time: { created: 1 } },
        messages: [
          {
            info: { id: "msg_a", role: "assistant", time: { created: 1 } },
            parts: list(length, (n) => ({
              ...{ type: "tool", callID: `c${n}`, tool: "t" },
              state: { status: "completed", input: {}, output: "x" },
            })),
          },
        ],
      },
    ],
  ],
  "compactions of opencode": [
    "opencode",
    (length) => [
      {
        info: { id: "ses_a", time: { created: 1 } },
        messages: list(length, (n) => [
          {
            info: { id: `msg_a${n}`, role: "user", time: { created: 1 } },
            parts: [{ type: "compaction", ...(n === 0 ? {} : { tail_start_id: `msg_b${n - 1}` }) }],
          },
          {
            info: { id: `msg_b${n}`, role: "assistant", summary: true, time: { created: 1 } },
            parts: [{ type: "text", text: "x" }],
          },
        ]).flat(),
      },
    ],
  ],
};

const textOf = (lines: readonly object[]): Buffer =>
  Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));

/** Counts lookups in maps: a walk along a chain does one in every step. */
async function lookupsOf(act: () => Promise<unknown>): Promise<number> {
  const get = Map.prototype.get;
  let lookups = 0;
  // A spy of Vitest would record every one of these calls.
  Map.prototype.get = function (key) {
    lookups += 1;
    return get.call(this, key);
  };
  try {
    await act();
    return lookups;
  } finally {
    Map.prototype.get = get;
  }
}

describe.for(Object.entries(CHAINS))("%s", ([, [name, chain]]) => {
  const format = foreignFormat(name);

  test("take a number of steps linear in their number, to read and to write", async () => {
    const steps = await lookupsOf(() => readForeign(format, [textOf(chain(200))]));
    const twice = await lookupsOf(() => readForeign(format, [textOf(chain(400))]));
    expect(twice).toBeLessThan(2.5 * steps + 500);
    const written: number[] = [];
    for (const length of [200, 400]) {
      await using store = openMemoryStore();
      const { sessions } = await importForeign({ store, userId: null }, format, [textOf(chain(length))]);
      const write = async () => {
        const { pieces } = await writeForeign(format, store, sessions[0]?.sessionId ?? "", { cwd: "/srv" });
        for await (const piece of pieces) expect(piece).not.toBe("");
      };
      written.push(await lookupsOf(write));
    }
    expect(written[1]).toBeLessThan(2.5 * (written[0] as number) + 500);
  });
});

test.for([
  "aliases of aliases in pi, whose first is looked up in every line",
  "lines of one answer in Claude Code",
  "items of one answer in Codex",
])("%s can be 130,000", { timeout: 120_000 }, async (which) => {
  const [name, chain] = CHAINS[which] as [FormatName, Chain];
  const reading = await readForeign(foreignFormat(name), [textOf(chain(130_000))]);
  expect(reading?.report.lost).toBe(0);
});

test("undone compactions, each below the one before, are omitted in one pass", async () => {
  const undone = async (length: number) => {
    await using store = openMemoryStore();
    const entries: EntryDraft[] = list(length, (n): EntryDraft[] => [
      { type: "compaction", id: `c${n}`, summary: "s", firstKeptEntryId: `c${n}`, tokensBefore: 1 },
      { type: "compaction_undone", id: `u${n}`, targetId: `c${n}` },
    ]).flat();
    const first: EntryDraft = { type: "message", id: "first", message: { role: "user", content: "Hello." } };
    const { header } = await store.create(createHeader(), { entries: [first, ...entries] });
    return await lookupsOf(async () => {
      const { pieces } = await writeForeign(foreignFormat("pi"), store, header.id, { cwd: "/srv" });
      for await (const piece of pieces) expect(piece).not.toContain("compaction");
    });
  };
  expect(await undone(600)).toBeLessThan(2.5 * (await undone(300)) + 500);
});
