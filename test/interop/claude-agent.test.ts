import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SkeinSessionStore, type TranscriptLine } from "../../src/interop/claude-agent/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { backends } from "../store-backends.ts";

const key = (sessionId: string, subpath?: string) => ({
  projectKey: "-home-ann-project",
  sessionId,
  ...(subpath === undefined ? {} : { subpath }),
});

const said = (uuid: string, text: string): TranscriptLine => ({
  type: "user",
  uuid,
  parentUuid: null,
  timestamp: "2026-01-02T03:04:05.678Z",
  message: { role: "user", content: text },
});

/** A line of an answer: each line has the usage of the whole answer. */
const answered = (uuid: string, block: object): TranscriptLine => ({
  type: "assistant",
  uuid,
  message: {
    id: "msg_1",
    role: "assistant",
    model: "a-model",
    content: [block],
    usage: { input_tokens: 10, cache_read_input_tokens: 5, output_tokens: 7 },
  },
});

const text = fc.string({ maxLength: 8 });
const block = fc.oneof(
  fc.record({ type: fc.constant("text"), text: fc.oneof(text, fc.constant(null)) }),
  fc.record({ type: fc.constant("thinking"), thinking: text, signature: text }),
  fc.record({
    type: fc.constant("tool_use"),
    id: text,
    name: text,
    input: fc.dictionary(
      text.filter((name) => name !== "__proto__"),
      text,
    ),
  }),
  fc.record(
    {
      type: fc.constant("tool_result"),
      tool_use_id: text,
      content: fc.oneof(text, fc.array(fc.record({ type: fc.constant("text"), text })), fc.constant(null)),
    },
    { requiredKeys: ["type", "tool_use_id"] },
  ),
);
const anyLine = fc.oneof(
  fc.record({
    type: fc.constantFrom("user", "assistant"),
    isMeta: fc.boolean(),
    message: fc.record({ role: text, content: fc.oneof(text, fc.array(block, { maxLength: 3 }), fc.constant(null)) }),
  }),
  fc.record({ type: fc.constantFrom("summary", "custom-title", "system"), summary: text, leafUuid: text }),
) as unknown as fc.Arbitrary<TranscriptLine>;

describe.for(backends)("the Claude Agent SDK's store on $name", (backend) => {
  let directory: string;
  let store: SessionStore;
  let transcripts: SkeinSessionStore;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "skein-claude-"));
    store = await backend.open(directory);
    transcripts = new SkeinSessionStore(store);
  });
  afterAll(async () => {
    await store.close();
    await rm(directory, { recursive: true, force: true });
  });

  test("returns any lines unchanged, in order, and null for a transcript that was never written", async () => {
    let session = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(anyLine, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
        async (batches) => {
          const one = key(`any-${session++}`);
          expect(await transcripts.load(one)).toBeNull();
          for (const batch of batches) await transcripts.append(one, batch);
          expect(await transcripts.load(one)).toEqual(batches.flat());
        },
      ),
      { numRuns: backend.name === "memory" ? 200 : 4 },
    );
  });

  test("stores a line with a uuid once, even if its content differs, and one without a uuid each time", async () => {
    const one = key("again");
    await transcripts.append(one, [said("u1", "hello"), { type: "mode", mode: "plan" }]);
    await transcripts.append(one, [said("u1", "hello"), { type: "mode", mode: "plan" }, said("u2", "more")]);
    await transcripts.append(one, [said("u2", "changed"), said("u3", "last")]);
    const lines = (await transcripts.load(one)) ?? [];
    expect(lines.map(({ uuid, type }) => uuid ?? type)).toEqual(["u1", "mode", "mode", "u2", "u3"]);
    expect(lines[3]).toEqual(said("u2", "more"));
  });

  test("stores messages as turns, and counts the usage of an answer once", async () => {
    const one = key("turns");
    await transcripts.append(one, [
      said("t1", "where is the giraffe?"),
      answered("t2", { type: "text", text: "I look." }),
      answered("t3", { type: "tool_use", id: "call-1", name: "Grep", input: { pattern: "giraffe" } }),
      {
        type: "user",
        uuid: "t4",
        message: { role: "user", content: [{ type: "tool_result", tool_use_id: "call-1", content: "in the yard" }] },
      },
    ]);
    const id = transcripts.sessionIdOf(one);
    const turns: unknown[] = [];
    for await (const entry of store.read(id)) if (entry.type === "message") turns.push(entry.message);
    expect(turns).toMatchObject([
      { role: "user", content: "where is the giraffe?" },
      { role: "assistant", model: "a-model", content: [{ type: "text", text: "I look." }] },
      { role: "assistant", toolCalls: [{ id: "call-1", name: "Grep", arguments: '{"pattern":"giraffe"}' }] },
      { role: "tool", toolCallId: "call-1", content: [{ type: "text", text: "in the yard" }] },
    ]);
    expect((await store.head(id))?.usage).toMatchObject({ inputTokens: 15, outputTokens: 7, totalTokens: 22 });
    expect((await store.search("giraffe yard")).map(({ head }) => head.header.id)).toEqual([id]);
  });

  test("separates projects and sub-agents, lists them, and deletes a session with its sub-agents", async () => {
    const main = key("with-helpers");
    const other = { projectKey: "-home-bob-project", sessionId: "with-helpers" };
    await transcripts.append(main, [said("m1", "main")]);
    await transcripts.append(key("with-helpers", "subagents/agent-1"), [said("m1", "helper")]);
    await transcripts.append(other, [said("m1", "another project")]);
    expect(await transcripts.load(key("with-helpers", "subagents/agent-1"))).toEqual([said("m1", "helper")]);
    expect(await transcripts.load(other)).toEqual([said("m1", "another project")]);
    expect(await transcripts.listSubkeys(main)).toEqual(["subagents/agent-1"]);
    expect(await transcripts.listSubkeys(other)).toEqual([]);
    const names = (await transcripts.listSessions(main.projectKey)).map(({ sessionId }) => sessionId);
    expect(names.filter((name) => name === "with-helpers")).toHaveLength(1);
    const [listed] = await transcripts.listSessions(other.projectKey);
    expect(listed).toEqual({ sessionId: "with-helpers", mtime: expect.any(Number) });
    expect(Number.isInteger(listed?.mtime)).toBe(true);
    await transcripts.delete(main);
    expect(await transcripts.load(main)).toBeNull();
    expect(await transcripts.load(key("with-helpers", "subagents/agent-1"))).toBeNull();
    expect(await transcripts.load(other)).not.toBeNull();
  });

  test("refuses keys and lines of an unsupported form, and stores nothing of them", async () => {
    const good = said("m1", "hello");
    const refused = { code: "DRIVER_VERSION", message: expect.stringContaining("docs/from-claude-agent.md") };
    const given = transcripts as unknown as Record<"append" | "load" | "listSessions", (...args: unknown[]) => unknown>;
    await expect(given.append("another-form", [good])).rejects.toMatchObject(refused);
    await expect(given.load({ project: "-home-ann-project", session: "s" })).rejects.toMatchObject(refused);
    await expect(given.listSessions()).rejects.toMatchObject(refused);
    for (const lines of [good, [good, "a line"], [good, { uuid: "m2" }], [null]])
      await expect(given.append(key("refused"), lines)).rejects.toMatchObject(refused);
    expect(await transcripts.load(key("refused"))).toBeNull();
  });
});
