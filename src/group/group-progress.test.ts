import fc from "fast-check";
import { expect, test } from "vitest";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import type { JsonValue } from "../internal/json.ts";
import {
  answerMessage,
  endDraft,
  failureDraft,
  passDraft,
  questionDraft,
  refusalDraft,
  workMessage,
} from "./group-drafts.ts";
import { stepProgress } from "./group-progress.ts";

function entries(...drafts: readonly EntryDraft[]): Entry[] {
  return drafts.map(
    (draft, seq) => ({ id: `e${seq}`, parentId: null, timestamp: "2024-01-01T00:00:00.000Z", seq, ...draft }) as Entry,
  );
}

const fold = (list: readonly Entry[]) => list.reduce(stepProgress, null);
const spoke = (agent: string): EntryDraft => ({
  type: "message",
  message: answerMessage(agent, {}, { role: "assistant", content: "…" }),
});
const person: EntryDraft = { type: "message", message: { role: "user", content: "by the way" } };

test("is nothing before a group was given a message", () => {
  expect(fold(entries(person, spoke("a"), passDraft("a"), endDraft("complete")))).toBeNull();
});

test("counts answers, passes and refusals as goes, and nothing else", () => {
  const work: EntryDraft = { type: "message", message: workMessage("a", { role: "assistant", content: "…" }) };
  const log = entries(
    questionDraft("?", { maxRounds: 3 }),
    work,
    spoke("a"),
    person,
    passDraft("b", { cost: 1 }),
    refusalDraft("c", new Error("no")),
    failureDraft("d", new Error("broken")),
    { type: "message", message: { role: "assistant", content: "of no group", agent: "e" } },
  );
  expect(fold(log)).toEqual({
    messageId: "e0",
    maxRounds: 3,
    moves: [
      { agent: "a", kind: "spoke" },
      { agent: "b", kind: "passed" },
      { agent: "c", kind: "refused" },
    ],
    ended: null,
  });
});

test("starts anew with the next message, and knows why the group stopped", () => {
  const log = entries(questionDraft("?", { maxRounds: 3 }), spoke("a"), endDraft("max-rounds"));
  expect(fold(log)).toMatchObject({ moves: [{ agent: "a" }], ended: "max-rounds" });
  const next = [...log, ...entries(questionDraft("!", { maxRounds: 1, turnId: "next" }))];
  expect(fold(next)).toEqual({ messageId: "next", maxRounds: 1, moves: [], ended: null });
});

test("ignores marks that no group made", () => {
  const marks: JsonValue[] = [
    1,
    "group",
    [],
    { kind: "turn" },
    { kind: "message" },
    { kind: "passed", agent: 1 },
    null,
  ];
  const forged = marks.flatMap((mark): EntryDraft[] => [
    { type: "message", message: { role: "assistant", content: "", metadata: { group: mark } } },
    { type: "custom", customType: "group", data: mark },
  ]);
  expect(fold(entries(questionDraft("?", { maxRounds: 1 }), ...forged))).toMatchObject({ messageId: "e0", moves: [] });
});

test("depends on nothing before the latest message", () => {
  const draft = fc.constantFrom<EntryDraft>(
    questionDraft("?", { maxRounds: 2 }),
    spoke("a"),
    spoke("b"),
    passDraft("a"),
    refusalDraft("b", null),
    failureDraft("a", null),
    endDraft("complete"),
    person,
  );
  fc.assert(
    fc.property(fc.array(draft, { maxLength: 20 }), (drafts) => {
      const log = entries(...drafts);
      const latest = drafts.findLastIndex(
        (each) => each.type === "message" && each.message.role === "user" && each !== person,
      );
      expect(fold(log)).toEqual(latest < 0 ? null : fold(log.slice(latest)));
    }),
  );
});

test("keeps what was thrown in few, well-formed words", () => {
  const { message } = failureDraft("a", new RangeError(`${"x".repeat(1999)}😀${"y".repeat(9000)}`)) as Extract<
    EntryDraft,
    { type: "message" }
  >;
  expect(message.metadata?.error).toEqual({ name: "RangeError", message: "x".repeat(1999) });
  expect(refusalDraft("a", Object.assign(new Error("no"), { code: "NO" }))).toMatchObject({
    data: { error: { name: "Error", message: "no", code: "NO" } },
  });
  expect(refusalDraft("a", "just a text")).toMatchObject({
    data: { error: { name: "Error", message: "just a text" } },
  });
});
