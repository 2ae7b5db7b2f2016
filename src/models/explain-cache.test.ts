import { expect, test } from "vitest";
import type { CacheAnswer, CacheReport } from "../session/context/cache-report.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { createHeader } from "../session/log/header.ts";
import type { AssistantMessage } from "../session/message.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { explainCache, type ExplainCacheOptions } from "./explain-cache.ts";

const START = Date.UTC(2026, 0, 1);
const tool = (name: string, description = "") => ({ name, description, parameters: { type: "object" } });

/** A log that is written by hand: each answer says how many tokens its request had, and how many were read from a cache. */
class HandLog {
  readonly #drafts: EntryDraft[] = [];
  #now = START;
  #setup: string | undefined;
  #asked = 0;

  wait(minutes: number): this {
    this.#now += minutes * 60_000;
    return this;
  }

  add(draft: EntryDraft): this {
    this.#drafts.push({ timestamp: new Date(this.#now).toISOString(), ...draft });
    return this;
  }

  setup(id: string, fields: Partial<Extract<EntryDraft, { type: "setup" }>> = {}): this {
    this.#setup = id;
    return this.add({ type: "setup", id, agent: "clerk", instructions: "Be brief.", tools: [tool("a")], ...fields });
  }

  /** A question and its answer, whose request had `input` tokens: `read` from the cache, the others written to it. */
  turn(input: number, read: number, message: Partial<AssistantMessage> = {}): this {
    this.#asked += 1;
    const usage = { inputTokens: input, outputTokens: 5, totalTokens: input + 5 };
    const { role, ...words } = {
      role: "assistant",
      provider: "anthropic",
      model: "claude-opus-5",
      ...message,
    } as const;
    const cached = { cacheReadTokens: read, cacheWriteTokens: input - read };
    return this.add({ type: "message", id: `q${this.#asked}`, message: { role: "user", content: "?" } }).add({
      type: "message",
      id: `a${this.#asked}`,
      ...(this.#setup === undefined ? {} : { setup: this.#setup }),
      message: { role, content: "!", usage: { ...usage, ...cached }, ...words },
    });
  }

  withoutSetup(): this {
    this.#setup = undefined;
    return this;
  }

  async explain(options: ExplainCacheOptions = {}): Promise<CacheReport> {
    const store = openMemoryStore();
    await store.create(createHeader({ id: "talk" }), { entries: this.#drafts as never });
    return explainCache(store, "talk", options);
  }

  async causes(options?: ExplainCacheOptions): Promise<CacheAnswer["cause"][]> {
    return (await this.explain(options)).answers.map(({ cause }) => cause);
  }
}

const begun = (): HandLog => new HandLog().setup("s").turn(2000, 0).turn(2100, 2000);

test("a session that reads all that it sent before has the factor 1 and no cause but its first request", async () => {
  const report = await begun().turn(2300, 2100).explain();
  expect(report).toMatchObject({
    count: 3,
    inputTokens: 6400,
    readTokens: 4100,
    writtenTokens: 2300,
    rewriteFactor: 1,
  });
  expect(report.causes).toEqual([{ type: "first", answers: 1, tokens: 0 }]);
  expect(report.answers[2]).toMatchObject({ expectedTokens: 2100, readTokens: 2100, rewrittenTokens: 0, cause: null });
});

test("a lifetime that is over is named with the gap: that of the options, of the setup, or of the provider", async () => {
  const lost = (log: HandLog) => log.wait(20).turn(2200, 0);
  const over = { type: "lifetime", gapMs: 1_200_000, lifetimeMs: 300_000 };
  expect((await lost(begun()).causes())[2]).toEqual(over);
  const forAnHour = () => new HandLog().setup("s", { cacheLifetimeMs: 3_600_000 }).turn(2000, 0).turn(2100, 2000);
  expect((await lost(forAnHour()).causes())[2]).toEqual({ type: "provider" });
  expect((await lost(forAnHour()).causes({ lifetimeMs: 300_000 }))[2]).toEqual(over);
  const gpt = { provider: "openai", model: "gpt-5.6" };
  const byBreakpoints = new HandLog().setup("s").turn(2000, 0, gpt).wait(20).turn(2200, 0, gpt);
  expect((await byBreakpoints.causes())[1]).toEqual({ type: "provider" });
});

test("a changed setup is named with its field, and the first tool that differs", async () => {
  const changed = async (fields: Parameters<HandLog["setup"]>[1]) =>
    (await begun().setup("t", fields).turn(2200, 0).causes())[2];
  expect(await changed({ instructions: "Be exact." })).toEqual({ type: "setup", field: "instructions" });
  expect(await changed({ tools: [tool("a", "New.")] })).toEqual({ type: "setup", field: "tools", tool: "a" });
  expect(await changed({ tools: [] })).toEqual({ type: "setup", field: "tools", tool: "a" });
  expect(await changed({ tools: [tool("b"), tool("a")] })).toEqual({ type: "setup", field: "tools", tool: "b" });
  expect(await changed({ thinkingLevel: "high" })).toEqual({ type: "setup", field: "thinkingLevel" });
  expect(await changed({ output: { type: "object" } })).toEqual({ type: "setup", field: "output" });
  expect(await changed({ providerOptionsDigest: "x" })).toEqual({ type: "setup", field: "providerOptions" });
  expect(await changed({ maxOutputTokens: 5, temperature: 1 })).toEqual({ type: "provider" });
});

test("an edit of an earlier message is the cause, one that was undone or is of a later one is not", async () => {
  const omitted = () => begun().add({ type: "context_edit", id: "e", targetId: "q1", message: null });
  expect((await omitted().turn(2200, 900).causes())[2]).toEqual({ type: "edit", entryId: "e" });
  const undone = omitted().add({ type: "context_edit", id: "u", undo: "e" });
  expect((await undone.turn(2200, 900).causes())[2]).toEqual({ type: "provider" });
  const later = begun()
    .add({ type: "message", id: "n", message: { role: "user", content: "new" } })
    .add({ type: "context_edit", id: "e", targetId: "n", message: null });
  expect((await later.turn(2200, 900).causes())[2]).toEqual({ type: "provider" });
});

test("a compaction is the cause, and so is undoing it", async () => {
  const compacted = () =>
    begun()
      .add({ type: "compaction", id: "c", summary: "In short.", firstKeptEntryId: "q2", tokensBefore: 2100 })
      .turn(1500, 900);
  expect((await compacted().causes())[2]).toEqual({ type: "compaction", entryId: "c" });
  const undone = compacted().add({ type: "compaction_undone", id: "d", targetId: "c" }).turn(2400, 900);
  expect((await undone.causes())[3]).toEqual({ type: "compaction", entryId: "c" });
});

test("a function of the program is named if nothing in the log differs", async () => {
  const transformed = new HandLog().setup("s", { transformed: true }).turn(2000, 0).turn(2200, 900);
  expect((await transformed.causes())[1]).toEqual({ type: "transform" });
});

test("a request on another branch reads what its own branch has cached, and says that it is another one", async () => {
  const branched = begun().add({ type: "leaf", id: "l", targetId: "a1" }).turn(2050, 2000);
  const report = await branched.explain();
  expect(report.answers[2]).toMatchObject({ expectedTokens: 2100, readTokens: 2000, cause: { type: "branch" } });
  const lost = begun().add({ type: "leaf", id: "l", targetId: "a1" }).turn(2050, 0);
  expect((await lost.causes())[2]).toEqual({ type: "provider" });
});

test("a request to another model is named with the model before, and each agent is compared with itself", async () => {
  const other = begun().turn(2200, 0, { model: "claude-sonnet-5" }).turn(2300, 2100);
  expect((await other.causes()).slice(2)).toEqual([
    { type: "model", before: "anthropic/claude-opus-5" },
    { type: "model", before: "anthropic/claude-sonnet-5" },
  ]);
  const two = begun().setup("o", { agent: "cook", instructions: "Cook." }).turn(3000, 0);
  expect((await two.causes())[2]).toEqual({ type: "first" });
  expect(await two.explain()).toMatchObject({ contextTokens: 5100, rewriteFactor: 1 });
});

test("answers without a setup are unknown, unless a time or a model explains them", async () => {
  const imported = () => new HandLog().withoutSetup().turn(2000, 0);
  expect((await imported().turn(2100, 0).causes())[1]).toEqual({ type: "unknown" });
  expect((await imported().wait(6).turn(2100, 0).causes())[1]).toMatchObject({ type: "lifetime" });
});

test("a later part of an answer, which counts only further output, is no request of its own", async () => {
  const report = await begun().turn(0, 0).turn(2300, 2100).explain();
  expect(report).toMatchObject({ count: 3, rewriteFactor: 1 });
  expect(report.answers[2]).toMatchObject({ expectedTokens: 2100, cause: null });
});

test("a provider that caches in steps may read up to a step less", async () => {
  const gpt = { provider: "openai", model: "gpt-5.2" };
  const steps = (read: number) => new HandLog().setup("s").turn(2006, 0, gpt).turn(2100, read, gpt).causes();
  expect((await steps(1920))[1]).toBeNull();
  expect((await steps(1664))[1]).toEqual({ type: "provider" });
});

test("the report has the latest answers, and sums of all", async () => {
  const report = await begun().turn(2300, 2100).explain({ limit: 1 });
  expect(report.answers.map(({ entryId }) => entryId)).toEqual(["a3"]);
  expect(report.count).toBe(3);
});
