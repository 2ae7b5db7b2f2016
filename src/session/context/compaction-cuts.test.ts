import fc from "fast-check";
import { expect, test } from "vitest";
import { assistant, calls, result, SampleLog, user } from "../../../test/sample-log.ts";
import { prepareCompaction } from "./compaction.ts";
import { type Entry, type EntryBody, isNode } from "../log/entry.ts";
import type { Message } from "../message.ts";
import { branchTo, indexEntries } from "../log/entry-tree.ts";

const text = fc.nat(12).map((length) => "x".repeat(length));

/** A round of tool calls: the calls, then their results in any order, some missing, with other messages in between. */
const round: fc.Arbitrary<Message[]> = fc
  .record({
    ids: fc.uniqueArray(fc.constantFrom<string>("x", "y", "z"), { minLength: 1, maxLength: 3 }),
    answered: fc.shuffledSubarray(["x", "y", "z"]),
    between: fc.option(text),
    body: text,
  })
  .map(({ ids, answered, between, body }) => [
    calls(...ids),
    ...answered
      .filter((id) => ids.includes(id))
      .flatMap((id, index) =>
        index === 1 && between !== null ? [user(between), result(id, body)] : [result(id, body)],
      ),
  ]);

const said: fc.Arbitrary<EntryBody[]> = fc.oneof(
  { weight: 3, arbitrary: text.map((content) => [messageOf(user(content))]) },
  { weight: 3, arbitrary: text.map((content) => [messageOf(assistant(content))]) },
  { weight: 4, arbitrary: round.map((messages) => messages.map(messageOf)) },
  text.map((content): EntryBody[] => [messageOf(result("orphan", content))]),
  text.map((content): EntryBody[] => [{ type: "custom_message", customType: "c", content, display: true }]),
  text.map((summary): EntryBody[] => [{ type: "branch_summary", summary, fromId: null }]),
  fc.constant<EntryBody[]>([{ type: "model_change", provider: "p", modelId: "m" }]),
  fc
    .nat(30)
    .map((back): EntryBody[] => [{ type: "compaction", summary: "s", firstKeptEntryId: `e${back}`, tokensBefore: 1 }]),
);

const conversations = fc.array(said, { maxLength: 25 }).map((groups) => {
  const log = new SampleLog();
  log.append(groups.flat().map((body, index) => ({ ...body, id: `e${index}` })));
  return branchTo(indexEntries(log.entries), log.head.leafId ?? "");
});

test("the kept part starts at a valid point, separates no call from its result, and the parts are the range in order", () => {
  let plans = 0;
  fc.assert(
    fc.property(conversations, fc.nat(60), (path, keepRecentTokens) => {
      const plan = prepareCompaction(path, { keepRecentTokens, tokenizer: (each) => each.length });
      if (plan === null) return;
      plans++;
      const { summarize, turnPrefix, keep } = plan;
      expect([...summarize, ...turnPrefix, ...keep]).toEqual(rangeOf(path));
      expect(plan.firstKeptEntryId).toBe(keep[0]?.id);
      expect(summarize.length + turnPrefix.length).toBeGreaterThan(0);
      expect(["user", "assistant", "custom_message", "branch_summary"]).toContain(kindOf(keep[0] as Entry));
      expect(dividedCalls([...summarize, ...turnPrefix], keep)).toEqual([]);
      if (turnPrefix.length > 0) {
        expect(kindOf(keep[0] as Entry)).toBe("assistant");
        expect(["user", "custom_message", "branch_summary"]).toContain(kindOf(turnPrefix[0] as Entry));
        expect(turnPrefix.slice(1).map(kindOf)).not.toContain("user");
      }
    }),
    { numRuns: 1000 },
  );
  expect(plans).toBeGreaterThan(200);
});

test("the kept part has at least keepRecentTokens, unless no valid point allows it", () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 30 }), fc.nat(100), (texts, keepRecentTokens) => {
      const log = new SampleLog();
      log.append(texts.map((content) => messageOf(user(content))));
      const plan = prepareCompaction(log.entries.filter(isNode), {
        keepRecentTokens,
        tokenizer: (each) => each.length,
      });
      if (plan === null || keepRecentTokens === 0) return;
      const sizes = plan.keep.map((entry) => (entry.type === "message" ? (entry.message.content as string).length : 0));
      const kept = sizes.reduce((sum, size) => sum + size, 0);
      expect(kept).toBeGreaterThanOrEqual(keepRecentTokens);
      expect(kept - (sizes[0] as number)).toBeLessThan(keepRecentTokens);
    }),
    { numRuns: 300 },
  );
});

function messageOf(message: Message): EntryBody {
  return { type: "message", message };
}

/** The entries that the latest compaction kept and all later ones, or everything. */
function rangeOf(path: readonly Entry[]): Entry[] {
  const latest = path.findLast((entry) => entry.type === "compaction");
  const kept = path.findIndex((entry) => entry.id === latest?.firstKeptEntryId && entry.seq <= latest.seq);
  const start = latest === undefined ? 0 : kept < 0 ? path.indexOf(latest) : kept;
  return path.slice(start).filter((entry) => entry.type !== "compaction");
}

function kindOf(entry: Entry): string {
  return entry.type === "message" ? entry.message.role : entry.type;
}

/** The calls before the cut whose result is the first of that id after the call, and lies behind the cut. */
function dividedCalls(before: readonly Entry[], after: readonly Entry[]): string[] {
  const all = [...before, ...after];
  return all.slice(0, before.length).flatMap((entry, index) => {
    if (entry.type !== "message" || entry.message.role !== "assistant") return [];
    return (entry.message.toolCalls ?? [])
      .map(({ id }) => id)
      .filter((id) => {
        const next = all.slice(index + 1);
        const answer = next.findIndex(
          (each) => each.type === "message" && each.message.role === "tool" && each.message.toolCallId === id,
        );
        const again = next.findIndex(
          (each) =>
            each.type === "message" &&
            each.message.role === "assistant" &&
            each.message.toolCalls?.some((other) => other.id === id) === true,
        );
        if (answer < 0 || (again >= 0 && again < answer)) return false;
        return index + 1 + answer >= before.length;
      });
  });
}

test("nothing is cut after a call that still waits for its result", () => {
  const log = new SampleLog().say({ a: user("one"), b: assistant("two"), c: user("three"), d: calls("x", "y") });
  log.say({ e: result("x", "done"), f: user("meanwhile"), g: user("and more") });
  const cutOf = (): string | undefined =>
    prepareCompaction(branchTo(indexEntries(log.entries), log.head.leafId ?? ""), {
      keepRecentTokens: 1,
      tokenizer: (each) => each.length,
    })?.firstKeptEntryId;
  expect(cutOf()).toBe("d");
  log.say({ h: result("y", "done"), i: user("and now") });
  expect(cutOf()).toBe("i");
});

test("calls that nobody waits for any more do not prevent a cut", () => {
  const cutAfter = (answer: Message): string | undefined => {
    const log = new SampleLog().say({ a: user("one"), b: calls("lost"), c: user("two"), d: answer, e: user("three") });
    return prepareCompaction(branchTo(indexEntries(log.entries), log.head.leafId ?? ""), {
      keepRecentTokens: 1,
      tokenizer: (each) => each.length,
    })?.firstKeptEntryId;
  };
  expect(cutAfter(assistant("an answer since"))).toBe("e");
  // Calls of an answer that was cut short never run.
  expect(cutAfter({ ...calls("cut"), stopReason: "length" } as Message)).toBe("e");
});
