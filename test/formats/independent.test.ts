import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ForeignReading } from "../../src/interop/formats/index.ts";
import { foreignFormat, readForeign } from "../../src/interop/formats/index.ts";
import { buildContext, compactionSummaryOf } from "../../src/session/context/context.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { Content, Message } from "../../src/session/message.ts";
import { PROGRAMS, turn } from "./foreign-conversations.ts";
import { type GoldenFile, goldenFiles, linesOf } from "./foreign-samples.ts";
import { readIndependently } from "./independent-reader.ts";

const INTERRUPTED = "The call was interrupted before it gave a result.";
const COMMAND = /^Ran `([^`]*)`[\s\S]*$/;

/** The context of a session, in the form of the independent reader. */
function toldOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message): string[] => {
    if (message.role === "system") return [];
    const text = textOf(message.content);
    if (message.role === "tool") return text.includes(INTERRUPTED) ? [] : [`result ${message.toolCallId}: ${text}`];
    if (message.role === "user") {
      const summary = compactionSummaryOf(message) ?? branchSummaryOf(text);
      return [summary === null ? `user: ${text.replace(COMMAND, "<command> $1")}` : `summary: ${summary}`];
    }
    const calls = ("toolCalls" in message ? (message.toolCalls ?? []) : []).map(
      ({ id, name }) => `call ${id}: ${name}`,
    );
    return [...(text.trim() === "" ? [] : [`answer: ${text}`]), ...calls];
  });
}

function branchSummaryOf(text: string): string | null {
  return (
    /^Another branch of this conversation was tried[\s\S]*<summary>\n([\s\S]*)\n<\/summary>$/.exec(text)?.[1] ?? null
  );
}

function textOf(content: Content | null): string {
  if (typeof content === "string") return content;
  const texts = (content ?? []).map((part) => {
    if (part.type === "text") return part.text;
    return part.type === "thinking" ? "" : `<${part.type}>`;
  });
  return texts.filter((text) => text !== "").join("|");
}

/** All tokens of a reading, on every branch. */
function tokensOf({ entries }: ForeignReading): number {
  return entries.reduce((sum, entry) => {
    // OpenRath's usage of a whole session is part of no sum.
    if (entry.type === "trailer") return sum;
    const spent = entry.type === "message" ? (entry.message.role === "assistant" ? entry.message : {}) : entry;
    return sum + ((spent as { usage?: { totalTokens: number } }).usage?.totalTokens ?? 0);
  }, 0);
}

async function readHere({ format }: Pick<GoldenFile, "format">, text: string) {
  const reading = await readForeign(format, [Buffer.from(text)]);
  if (reading === null) return null;
  const { messages } = buildContext(reading.entries as unknown as Entry[]);
  return { told: toldOf(messages), tokens: tokensOf(reading), report: reading.report };
}

/** A file with one change. */
interface Mutation {
  readonly about: string;
  readonly text: string;
  /** Whether it holds a line, or a message, of a kind that no program writes. */
  readonly unknown: boolean;
}

type Value = { [key: string]: unknown };

const files = goldenFiles();
const withLines = files.filter(({ format }) => format.unit === "lines");
const documents = files.filter(({ format }) => format.unit === "document");

const UNKNOWN_KIND = "kettle-weather";

/** Changes that can be made at each line of a file; null if a change is not possible there. */
const atLines: Readonly<Record<string, (lines: readonly string[], at: number, file: GoldenFile) => string[] | null>> = {
  "without one of its lines": (lines, at) => (at === 0 ? null : lines.toSpliced(at, 1)),
  "with one of its lines doubled": (lines, at) => lines.toSpliced(at, 0, lines[at] as string),
  "with two of its lines exchanged": (lines, at) => {
    const [one, other] = [lines[at] as string, lines[at + 1]];
    // A program writes no line before its parent.
    return at === 0 || other === undefined || hangsOn(other, one) ? null : lines.toSpliced(at, 2, other, one);
  },
  "with a line of an unknown kind in it": (lines, at) =>
    at === 0 ? null : lines.toSpliced(at, 0, JSON.stringify({ type: UNKNOWN_KIND, payload: { type: "rain" } })),
  "with an unknown part in one of its messages": (lines, at) => {
    const whole = withUnknownPart(JSON.parse(lines[at] as string) as Value);
    return whole === null ? null : lines.with(at, JSON.stringify(whole));
  },
  "that ends in the middle of a line": (lines, at) =>
    at === 0 ? null : [...lines.slice(0, at), (lines[at] as string).slice(0, -7)],
  "with a summary of an earlier talk in it": (lines, at, { format }) => {
    if (format.name !== "claude-code" || at === 0) return null;
    return lines.toSpliced(at, 0, JSON.stringify({ type: "summary", summary: "Kettles", leafUuid: "elsewhere" }));
  },
  "with something that was typed meanwhile in it": (lines, at, { format }) => {
    const before = JSON.parse(lines[at] as string) as Value;
    if (format.name !== "claude-code" || typeof before.uuid !== "string") return null;
    const attachment = { type: "queued_command", prompt: "And the lid?", commandMode: "prompt" };
    const uuid = "6a1f6c8e-0000-4000-8000-00000000000a";
    const typed = JSON.stringify({
      ...before,
      type: "attachment",
      attachment,
      uuid,
      parentUuid: before.uuid,
      message: 0,
    });
    const after = lines
      .slice(at + 1)
      .map((line) => line.replace(`"parentUuid":"${before.uuid}"`, `"parentUuid":"${uuid}"`));
    return [...lines.slice(0, at + 1), typed, ...after];
  },
};

/** Whether a line names another one as its parent or its call. */
function hangsOn(line: string, other: string): boolean {
  const [child, parent] = [JSON.parse(line) as Value, JSON.parse(other) as Value];
  return [child.parentUuid, child.parentId, child.logicalParentUuid].some(
    (id) => typeof id === "string" && (id === parent.uuid || id === parent.id),
  );
}

/** The message in a line of any program, with one more part in it; null for a line that has none. */
function withUnknownPart(value: Value): Value | null {
  const part = { type: "kettle_song", notes: [1, 2] };
  for (const field of ["message", "payload"]) {
    const inner = value[field] as Value | undefined;
    if (!Array.isArray(inner?.content) || inner.role === "system" || inner.role === "developer") continue;
    return { ...value, [field]: { ...inner, content: [...inner.content, part] } };
  }
  return null;
}

async function differences(file: GoldenFile, mutations: readonly Mutation[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const { about, text, unknown } of mutations) {
    const here = await readHere(file, text);
    const there = readIndependently(file.format.name, text);
    if (here === null) continue;
    const [told, tokens] = [here.told.join("\n"), here.tokens];
    if (told !== there.told.join("\n")) found.push({ about, here: here.told, there: there.told });
    if (tokens !== there.tokens) found.push({ about, tokens, there: there.tokens });
    const kinds = [...here.report.unknownKinds];
    if (unknown && (kinds.length !== 1 || kinds[0]?.[1] !== 1)) found.push({ about, kinds });
    if (here.report.lost !== there.broken) found.push({ about, lost: here.report.lost, there: there.broken });
    if (here.report.lines !== there.lines) found.push({ about, lines: here.report.lines, there: there.lines });
  }
  return found;
}

test.for(files)(
  "$name gives the same result as the reader written from the documentation of its format",
  async (file) => {
    const here = await readHere(file, file.text);
    const { told, tokens } = readIndependently(file.format.name, file.text);
    expect(here).toMatchObject({ told, tokens });
  },
);

describe.for(Object.entries(atLines))("a file %s gives the same result as the independent reader", ([, change]) => {
  test.for(withLines)("$name", async (file) => {
    const lines = linesOf(file.text);
    const mutations = lines.flatMap((_, at): Mutation[] => {
      const changed = change(lines, at, file);
      if (changed === null) return [];
      const changedText = changed.join("\n");
      return [{ about: `line ${at + 1}`, text: changedText, unknown: changedText.includes(UNKNOWN_KIND) }];
    });
    expect(await differences(file, mutations)).toEqual([]);
  });
});

test.for(PROGRAMS)(
  "random conversations of %s give the same result as the independent reader",
  async ([name, write]) => {
    const turns = fc.array(turn, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(turns, async (some) => {
        const text = write(some).join("\n");
        const { told, tokens } = readIndependently(name, text);
        expect(await readHere({ format: foreignFormat(name) }, text)).toMatchObject({ told, tokens });
      }),
      { numRuns: 150 },
    );
  },
);

/** Changes that can be made at each message of an opencode document. */
const atMessages: Readonly<Record<string, (messages: readonly Value[], at: number) => Value[]>> = {
  "without one of its messages": (messages, at) => messages.toSpliced(at, 1),
  "with two of its messages exchanged": (messages, at) =>
    messages.toSpliced(at, 2, ...messages.slice(at, at + 2).reverse()),
  "with an unknown part in one of its messages": (messages, at) => {
    const message = messages[at] as { parts: Value[] };
    return messages.with(at, { ...message, parts: [...message.parts, { type: "kettle_song", id: "prt_1" }] });
  },
  "with a message of an unknown kind in it": (messages, at) =>
    messages.toSpliced(at, 0, { info: { id: "msg_0", role: UNKNOWN_KIND }, parts: [] }),
};

describe.for(Object.entries(atMessages))(
  "a document %s gives the same result as the independent reader",
  ([, change]) => {
    test.for(documents)("$name", async (file) => {
      const document = JSON.parse(file.text) as { messages: Value[] };
      const mutations = document.messages.map((_, at): Mutation => {
        const text = JSON.stringify({ ...document, messages: change(document.messages, at) });
        return { about: `message ${at + 1}`, text, unknown: text.includes(UNKNOWN_KIND) };
      });
      expect(await differences(file, mutations)).toEqual([]);
    });
  },
);

test.for(documents)("the counters of opencode for the session of $name are the sum of what is read", async (file) => {
  const { tokens } = (JSON.parse(file.text) as { info: { tokens: Record<string, number> & { cache: object } } }).info;
  const counted = [tokens.input, tokens.output, tokens.reasoning, ...(Object.values(tokens.cache) as number[])];
  expect((await readHere(file, file.text))?.tokens).toBe(counted.reduce<number>((sum, each) => sum + (each ?? 0), 0));
});
