import fc from "fast-check";
import { expect, test } from "vitest";
import { type ForeignFormat, foreignFormat } from "../../src/interop/formats/index.ts";
import { uuidv7 } from "../../src/internal/uuid.ts";
import { bodyOf, type EntryDraft, isNode } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { ContentPart, Message, ToolCall } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, importText, writtenText } from "./foreign-samples.ts";

/** One step in a session, and whether a later step may branch off at its end. */
type Step =
  | { readonly kind: "say"; readonly messages: readonly Message[] }
  | { readonly kind: "compact"; readonly summary: string }
  | { readonly kind: "back"; readonly to: number }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "add"; readonly body: EntryDraft }
  | { readonly kind: "label"; readonly at: number; readonly label: string };

const word = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20 }),
  fc.constantFrom("hello", "\u{1f9f6} é\n\t\"'", "</summary>"),
);
const filled = word.filter((text) => text.trim() !== "");
const image = fc.constant<ContentPart>({ type: "image", mediaType: "image/png", data: "aGVsbG8=" });
const text = filled.map((said): ContentPart => ({ type: "text", text: said }));
const parts = fc.tuple(text, fc.oneof(text, image)).map((both) => [...both]);
const counts = fc.record({
  input: fc.nat(1000),
  output: fc.integer({ min: 1, max: 1000 }),
  read: fc.nat(100),
  write: fc.nat(100),
});

const user = fc.oneof(filled, parts).map((content): Message[] => [{ role: "user", content }]);

const calls = fc.array(
  fc.record({
    name: fc.constantFrom("bash", "read"),
    input: fc.dictionary(filled, fc.oneof(filled, fc.nat()), { maxKeys: 2 }),
  }),
  {
    maxLength: 3,
  },
);

const answer = fc
  .record({
    said: filled,
    thinks: fc.option(filled, { nil: undefined }),
    calls,
    counts,
    failed: fc.boolean(),
    result: fc.oneof(word, parts),
  })
  .map(({ said, thinks, calls: asked, counts: spent, failed, result }): Message[] => {
    const toolCalls = asked.map(
      ({ name, input }): ToolCall => ({ id: `call_${uuidv7()}`, name, arguments: JSON.stringify(input) }),
    );
    const thought: ContentPart[] = thinks === undefined ? [] : [{ type: "thinking", text: thinks, signature: "c2ln" }];
    const inputTokens = spent.input + spent.read + spent.write;
    const usage = {
      ...{ inputTokens, outputTokens: spent.output, totalTokens: inputTokens + spent.output },
      ...(spent.read > 0 ? { cacheReadTokens: spent.read } : {}),
      ...(spent.write > 0 ? { cacheWriteTokens: spent.write } : {}),
    };
    return [
      {
        role: "assistant",
        content: thinks === undefined ? said : [...thought, { type: "text", text: said }],
        ...(toolCalls.length === 0 ? {} : { toolCalls }),
        ...{ provider: "anthropic", model: "m", usage, stopReason: toolCalls.length === 0 ? "stop" : "tool_calls" },
      },
      ...toolCalls.map(
        ({ id, name }): Message => ({
          role: "tool",
          toolCallId: id,
          name,
          content: result,
          ...(failed ? { isError: true } : {}),
        }),
      ),
    ];
  });

const said = fc.oneof(user, answer).map((messages): Step => ({ kind: "say", messages }));
const back = fc.nat(20).map((to): Step => ({ kind: "back", to }));
const name = filled.map((given): Step => ({ kind: "name", name: given }));
const compact = filled.map((summary): Step => ({ kind: "compact", summary }));
const add = fc
  .oneof(
    fc.constant<EntryDraft>({ type: "model_change", provider: "anthropic", modelId: "n" }),
    fc.constant<EntryDraft>({ type: "thinking_level_change", thinkingLevel: "high" }),
    fc.constant<EntryDraft>({ type: "variables", set: { a: 1 }, unset: [] }),
    fc.constant<EntryDraft>({ type: "message", message: { role: "system", content: "Be brief." } }),
    fc
      .record({ customType: filled, data: fc.jsonValue({ maxDepth: 2 }) })
      .map((each) => ({ type: "custom", ...each }) as EntryDraft),
    filled.map((content): EntryDraft => ({ type: "custom_message", customType: "note", content, display: true })),
    filled.map((summary): EntryDraft => ({ type: "branch_summary", summary, fromId: null })),
  )
  .map((body): Step => ({ kind: "add", body }));
const label = fc.record({ at: fc.nat(20), label: filled }).map((each): Step => ({ kind: "label", ...each }));

/** Answers for programs whose tool results are texts. */
const plainAnswer = answer.map((messages) =>
  messages.map((message): Message => {
    if (message.role !== "tool" || typeof message.content === "string") return message;
    return { ...message, content: "done" };
  }),
);
/** Answers for programs that store no thinking. */
const bareAnswer = plainAnswer.map((messages) =>
  messages.map((message): Message => {
    if (message.role !== "assistant" || typeof message.content === "string") return message;
    return { ...message, content: "Understood." };
  }),
);
const plainUser = filled.map((content): Message[] => [{ role: "user", content }]);
const plain = fc.oneof(user, plainAnswer).map((messages): Step => ({ kind: "say", messages }));
const bare = fc.oneof(plainUser, bareAnswer).map((messages): Step => ({ kind: "say", messages }));
const added = (types: readonly string[]): fc.Arbitrary<Step> =>
  add.filter((step) => step.kind === "add" && types.includes(step.body.type));

/** The parts that each format supports. */
const held: readonly (readonly [string, fc.Arbitrary<Step>])[] = [
  ["claude-code", fc.oneof({ weight: 4, arbitrary: said }, back, name, compact)],
  [
    "codex",
    fc.oneof(
      { weight: 4, arbitrary: said },
      name,
      compact,
      added(["message", "custom_message", "branch_summary", "model_change", "thinking_level_change"]),
    ),
  ],
  ["opencode", fc.oneof({ weight: 4, arbitrary: plain }, name, compact, added(["custom_message", "branch_summary"]))],
  ["openrath", fc.oneof({ weight: 4, arbitrary: bare }, added(["message", "custom_message", "branch_summary"]))],
  ["pi", fc.oneof({ weight: 4, arbitrary: said }, back, name, compact, add, label)],
];

/** Makes the session; branches start at the ends of steps. */
async function play(store: SessionStore, steps: readonly Step[]): Promise<void> {
  await store.create(createHeader({ id: "talk", cwd: "/srv/shop" }));
  const ends: string[] = [];
  const append = async (body: EntryDraft): Promise<string> => {
    const { entries } = await store.append("talk", [{ ...body, id: uuidv7() }]);
    return entries[0]?.id ?? "";
  };
  for (const step of steps) {
    const end = (at: number) => ends[at % ends.length];
    if (step.kind === "say") {
      let last = "";
      for (const message of step.messages) last = await append({ type: "message", message });
      ends.push(last);
    } else if (step.kind === "name") await append({ type: "session_info", name: step.name });
    else if (step.kind === "add") ends.push(await append(step.body));
    else if (step.kind === "back" && ends.length > 0) await append({ type: "leaf", targetId: end(step.to) ?? null });
    else if (step.kind === "label" && ends.length > 0)
      await append({ type: "label", targetId: end(step.at) ?? "", label: step.label });
    else if (step.kind === "compact") {
      const firstKeptEntryId = (await store.head("talk"))?.leafId ?? "";
      ends.push(await append({ type: "compaction", summary: step.summary, firstKeptEntryId, tokensBefore: 10 }));
    }
  }
}

/** The data that must be equal: the nodes with their parents, the name, the labels and the leaf. */
async function sum(store: SessionStore, sessionId: string) {
  const entries = await entriesOf(store, sessionId);
  const head = await store.head(sessionId);
  const nodes = entries.filter(isNode).map((entry) => {
    const { foreign: _foreign, ...body } = bodyOf(entry) as ReturnType<typeof bodyOf> & { foreign?: unknown };
    return [entry.id, entry.parentId, entry.timestamp, body];
  });
  const labels = entries.flatMap((entry) => (entry.type === "label" ? [[entry.targetId, entry.label]] : []));
  return { nodes, labels, name: head?.name ?? null, leafId: head?.leafId ?? null };
}

async function survives(format: ForeignFormat, steps: readonly Step[]): Promise<void> {
  await using store = openMemoryStore();
  await using other = openMemoryStore();
  await play(store, steps);
  const sessionId = await importText(other, format, await writtenText(format, store, "talk"));
  expect(await sum(other, sessionId)).toEqual(await sum(store, "talk"));
}

test.for(held)("what %s can hold is equal after an export and an import", async ([format, step]) => {
  const steps = fc.array(step, { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(steps, (some) =>
      survives(foreignFormat(format), [{ kind: "say", messages: [{ role: "user", content: "Begin." }] }, ...some]),
    ),
    { numRuns: 100 },
  );
});
