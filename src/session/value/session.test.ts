import { describe, expect, test } from "vitest";
import { CountedBackend } from "../../../test/counted-sandbox.ts";
import type { Lineage } from "../log/header.ts";
import { trackLineage } from "../lineage/lineage-scope.ts";
import {
  createSystemSession,
  createUserSession,
  detachSession,
  forkSession,
  mergeSessions,
  Session,
  type SessionInit,
} from "./session.ts";
import { assistantRow, Transcript, userRow } from "./transcript.ts";

const UNKNOWN = { parents: [], operator: "implicit", kind: "unknown", extras: [] };
const usage = (tokens: number) => ({ inputTokens: tokens, outputTokens: 1, totalTokens: tokens + 1 });
const contents = (session: Session) => session.transcript.toMessages().map(({ role, content }) => [role, content]);

describe("making a session", () => {
  test("from a message or a prompt has no lineage", () => {
    const user = Session.fromUserMessage([{ type: "text", text: "Hi" }]);
    const agent = Session.fromAgentPrompt("Be brief.");
    expect(contents(user)).toEqual([["user", [{ type: "text", text: "Hi" }]]]);
    expect(contents(agent)).toEqual([["system", "Be brief."]]);
    expect([user.lineage, agent.lineage]).toEqual([UNKNOWN, UNKNOWN]);
    expect(user.id).not.toBe(agent.id);
    expect([user.usage, user.cost, user.sandbox, user.sandboxBackend, user.text()]).toEqual(Array(5).fill(null));
  });

  test("with create sets a lineage; an empty one ignores its text", () => {
    const leaf = (kind: string, operator: string) => ({ parents: [], operator, kind, extras: [] });
    expect(Session.create().lineage).toEqual(leaf("leaf_user", "createUserSession"));
    expect(contents(Session.create())).toEqual([["user", ""]]);
    expect(contents(createUserSession("Hi"))).toEqual([["user", "Hi"]]);
    expect(createUserSession("Hi").lineage).toEqual(Session.create({ kind: "user", text: "Hi" }).lineage);
    expect(contents(createSystemSession("Be brief."))).toEqual([["system", "Be brief."]]);
    expect(createSystemSession("").lineage).toEqual(leaf("leaf_system", "createSystemSession"));
    const empty = Session.create({ kind: "empty", text: "ignored" });
    expect([empty.transcript.length, empty.lineage]).toEqual([0, UNKNOWN]);
    expect(() => Session.create({ kind: "robot" as "user" })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  });

  test("of rows keeps a copy of them", () => {
    const lineage: Lineage = { parents: ["a"], operator: "o", kind: "op_fork", extras: [["note", { name: "x" }]] };
    const given = { id: "mine", lineage, usage: usage(5), cost: 0.5 };
    const session = Session.of(Transcript.of([userRow("Hi")]), given);
    given.usage.inputTokens = 99;
    (lineage.parents as string[]).push("b");
    (lineage.extras[0]?.[1] as { name: string }).name = "changed";
    expect([session.id, session.usage, session.cost]).toEqual(["mine", usage(5), 0.5]);
    expect(session.lineage).toEqual({ ...lineage, parents: ["a"], extras: [["note", { name: "x" }]] });
    expect(Object.isFrozen(lineage)).toBe(false);
  });

  test.for<[string, SessionInit, string]>([
    ["an id that is not one", { id: "../up" }, "INVALID_ID"],
    ["a lineage of no known kind", { lineage: { ...UNKNOWN, kind: "magic" } as unknown as Lineage }, "INVALID_HEADER"],
    ["a parent that is no id", { lineage: { ...UNKNOWN, parents: ["a b"] } as unknown as Lineage }, "INVALID_ID"],
    [
      "extras that JSON cannot carry",
      { lineage: { ...UNKNOWN, extras: [["at", new Date()]] } as never },
      "INVALID_VALUE",
    ],
    ["a usage without a counter", { usage: { inputTokens: 1 } as never }, "INVALID_VALUE"],
    ["a usage below zero", { usage: usage(-1) }, "INVALID_VALUE"],
    ["a cost that is no number", { cost: Number.NaN }, "INVALID_VALUE"],
  ])("is refused with %s, and no journal notes it", ([, init, code]) => {
    trackLineage((journal) => {
      expect(() => Session.of(Transcript.empty, init)).toThrow(expect.objectContaining({ code }));
      expect(journal.visitOrder).toEqual([]);
    });
  });

  test("is refused without a transcript, or in a sandbox that is closed", async () => {
    expect(() => Session.of([userRow("Hi")] as never)).toThrow(/Transcript\.of\(rows\)/);
    const sandbox = await new CountedBackend().open({});
    await sandbox.close();
    trackLineage((journal) => {
      expect(() => Session.of(Transcript.empty, { sandbox })).toThrow(
        expect.objectContaining({ kind: "sandbox_closed" }),
      );
      expect(journal.visitOrder).toEqual([]);
    });
  });

  test("returns only immutable values", () => {
    const session = Session.of(Transcript.empty, { usage: usage(1), lineage: { ...createUserSession("").lineage } });
    expect(() => Object.assign(session, { id: "other" })).toThrow(TypeError);
    expect(() => Object.assign(session.usage as object, { inputTokens: 9 })).toThrow(TypeError);
    expect(() => Object.assign(session.lineage, { kind: "unknown" })).toThrow(TypeError);
    expect(() => (session.lineage.parents as string[]).push("x")).toThrow(TypeError);
    const { lineage } = Session.fromUserMessage("");
    expect(() => (lineage.extras as unknown[]).push("x")).toThrow(TypeError);
  });
});

describe("deriving a session", () => {
  const source = () =>
    Session.of(Transcript.of([userRow("Hi"), assistantRow([], "Hello")]), { usage: usage(5), cost: 1 });

  test("by a fork shares the transcript, has its source as the parent, and has no usage of its own", () => {
    const session = source();
    const fork = session.fork();
    expect(fork.transcript).toBe(session.transcript);
    expect(fork.lineage).toEqual({ parents: [session.id], operator: "fork", kind: "op_fork", extras: [] });
    expect([fork.usage, fork.cost]).toEqual([null, null]);
    expect(forkSession(fork).lineage.parents).toEqual([fork.id]);
    expect(forkSession(fork).transcript).toBe(session.transcript);
    expect(new Set([session.id, fork.id, fork.fork().id, fork.fork().id]).size).toBe(4);
  });

  test("by a detach creates a new root", () => {
    const session = source();
    for (const detached of [session.detach(), detachSession(session)]) {
      expect(detached.transcript).toBe(session.transcript);
      expect(detached.lineage).toEqual({ parents: [], operator: "detach", kind: "op_detach", extras: [] });
      expect(detached.id).not.toBe(session.id);
    }
  });

  test("by a merge has the rows and the parents of both, and the sum of their usage", () => {
    const left = source();
    const right = Session.of(Transcript.of([userRow("And?")]), {
      usage: { ...usage(7), cacheReadTokens: 3 },
      cost: 0.5,
    });
    for (const merged of [left.merge(right), mergeSessions(left, right)]) {
      expect(contents(merged)).toEqual([...contents(left), ...contents(right)]);
      expect(merged.lineage).toEqual({ parents: [left.id, right.id], operator: "merge", kind: "op_merge", extras: [] });
      expect(merged.usage).toEqual({ inputTokens: 12, outputTokens: 2, totalTokens: 14, cacheReadTokens: 3 });
      expect(merged.cost).toBe(1.5);
    }
    const nothing = Session.fromUserMessage("x");
    expect([nothing.merge(nothing).usage, nothing.merge(nothing).cost]).toEqual([null, null]);
    expect([left.merge(nothing).usage, nothing.merge(left).usage]).toEqual([usage(5), usage(5)]);
    expect([left.merge(nothing).cost, nothing.merge(left).cost]).toEqual([1, 1]);
  });

  test("does not change its sources", () => {
    const [left, right] = [source(), source()];
    const before = [left, right].map((session) => [session.id, session.transcript, session.lineage, session.usage]);
    left.fork().merge(right.detach()).merge(left);
    expect([left, right].map((session) => [session.id, session.transcript, session.lineage, session.usage])).toEqual(
      before,
    );
  });

  test("from one of 100,000 rows shares all of them", () => {
    const session = Session.of(Transcript.of(Array.from({ length: 100_000 }, (_, index) => userRow(`${index}`))));
    let fork = session.fork();
    for (let depth = 0; depth < 1000; depth++) fork = fork.fork();
    expect(fork.transcript).toBe(session.transcript);
    const grown = Session.derive(fork, fork.transcript.append(userRow("new")), {});
    expect([grown.transcript.length, session.transcript.length]).toEqual([100_001, 100_000]);
    expect(grown.transcript.at(99_999)).toBe(session.transcript.at(99_999));
  });

  test("by a merge keeps the place of this side, never that of the other", async () => {
    const [one, two] = [new CountedBackend(), new CountedBackend()];
    await using open = Session.fromUserMessage("a").to(one.name);
    const sandbox = await open.requireSandbox();
    const aimed = Session.fromUserMessage("b").to(two.name);
    const placeless = Session.fromUserMessage("c");
    await using kept = open.merge(aimed);
    expect(kept.sandbox).toBe(sandbox);
    expect([aimed.merge(open).sandbox, aimed.merge(open).sandboxBackend]).toEqual([null, two.name]);
    expect(placeless.merge(open).sandboxBackend).toBeNull();
    expect(placeless.merge(aimed).sandboxBackend).toBeNull();
    expect(aimed.merge(placeless).sandboxBackend).toBe(two.name);
  });

  test("by a merge is refused if the places have different backends and neither is open", async () => {
    const [one, two] = [new CountedBackend(), new CountedBackend()];
    const [left, right] = [Session.fromUserMessage("a").to(one.name), Session.fromUserMessage("b").to(two.name)];
    trackLineage((journal) => {
      expect(() => left.merge(right)).toThrow(
        `Sessions ${left.id} and ${right.id} are aimed at different sandbox backends, "${one.name}" and "${two.name}"; aim them at one with to().`,
      );
      expect(journal.visitOrder).toEqual([]);
    });
    expect(left.merge(Session.fromUserMessage("c").to(one.name, "/other")).sandboxBackend).toBe(one.name);
    const asked = left.requireSandbox();
    await using merged = left.merge(right);
    expect(await merged.requireSandbox()).toBe(await asked);
    await left.closeSandbox();
  });
});

describe("a session that an operation makes", () => {
  test("returns its progress as a copy", () => {
    const session = Session.fromUserMessage("Hi").fork();
    const spent = usage(3);
    const transcript = session.transcript.append(assistantRow([], "Hello"));
    Session.grow(session, { transcript, usage: spent });
    spent.inputTokens = 99;
    expect([session.transcript, session.usage, session.cost]).toEqual([transcript, usage(3), null]);
    Session.grow(session, { cost: 0.25 });
    expect([session.transcript, session.usage, session.cost]).toEqual([transcript, usage(3), 0.25]);
  });

  test("can add lineage fields at the end of the operation", () => {
    const session = Session.fromUserMessage("Hi").fork();
    const value = { rounds: [1] };
    Session.addExtras(session, [["loop.truncated", true]]);
    Session.addExtras(session, [["detail", value]]);
    value.rounds.push(2);
    expect(session.lineage.extras).toEqual([
      ["loop.truncated", true],
      ["detail", { rounds: [1] }],
    ]);
    expect(session.lineage).toMatchObject({ operator: "fork", kind: "op_fork" });
  });

  test("can get the placement of another, unless it has its own sandbox", async () => {
    const backend = new CountedBackend();
    await using source = Session.fromUserMessage("Hi").to(backend.name);
    await using waiting = Session.fromUserMessage("Hi");
    await source.requireSandbox();
    Session.place(waiting, source);
    expect(waiting.sandbox).toBe(source.sandbox);
    await using own = Session.fromUserMessage("Hi").to(backend.name);
    const asked = own.requireSandbox();
    Session.place(own, source);
    expect(await asked).not.toBe(source.sandbox);
  });
});

describe("text", () => {
  test("is the text of the last answer, even if other messages follow", () => {
    const transcript = Transcript.of([
      userRow("Hi"),
      assistantRow([], "First"),
      assistantRow(
        [],
        [
          { type: "thinking", text: "hm" },
          { type: "text", text: "Second" },
        ],
      ),
      assistantRow([{ id: "c", name: "tool", arguments: "" }]),
      userRow("And?"),
    ]);
    expect(Session.of(transcript).text()).toBe("Second");
    expect(Session.fromUserMessage("Hi").text()).toBeNull();
  });
});
