import { describe, expect, test } from "vitest";
import { parseLineageJsonl, sessionToRow, toJsonl } from "./lineage-export.ts";
import { createUserSession, Session } from "../value/session.ts";
import { Transcript, userRow } from "../value/transcript.ts";

const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };

describe("an export", () => {
  test("has one row for a session, without its content", () => {
    const source = createUserSession("a secret");
    const session = Session.of(source.transcript.append(userRow("another secret")), {
      id: "loop-1",
      lineage: {
        parents: [source.id, "agent"],
        operator: "runSessionLoop",
        kind: "op_session_loop",
        extras: [["loop.truncated", true]],
      },
      usage,
      cost: 0.25,
    });
    expect(sessionToRow(session)).toEqual({
      id: "loop-1",
      parents: [source.id, "agent"],
      operator: "runSessionLoop",
      kind: "op_session_loop",
      extras: [["loop.truncated", true]],
      rowCount: 2,
      usage,
      cost: 0.25,
    });
    expect(JSON.stringify(sessionToRow(session))).not.toContain("secret");
    expect(sessionToRow(source)).toEqual({ ...source.lineage, id: source.id, rowCount: 1, usage: null });
    expect("cost" in sessionToRow(source)).toBe(false);
  });

  test("is one line of JSON for each session, in the order given, and empty for none", () => {
    const [a, b] = [createUserSession("a"), createUserSession("b")];
    const hostile = Session.of(Transcript.empty, { lineage: { ...a.lineage, operator: 'line\nbreak"}' } });
    const text = toJsonl([b, a, hostile, a]);
    expect(text.endsWith("\n")).toBe(true);
    expect(
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ).toEqual([b, a, hostile].map(sessionToRow));
    expect(toJsonl([])).toBe("");
  });

  test("can be read back", () => {
    const session = Session.of(Transcript.empty, { usage, cost: 0 });
    const sessions = [session, session.fork(), createUserSession("x")];
    expect(parseLineageJsonl(toJsonl(sessions))).toEqual(sessions.map(sessionToRow));
    expect(parseLineageJsonl("\n")).toEqual([]);
  });

  const row = sessionToRow(createUserSession("x"));
  test.for<[string, string]>([
    ["that is cut short", JSON.stringify(row).slice(0, -5)],
    ["that is not an object", "[]"],
    ["without an id", JSON.stringify({ ...row, id: undefined })],
    ["of no known kind", JSON.stringify({ ...row, kind: "magic" })],
    ["without a row count", JSON.stringify({ ...row, rowCount: undefined })],
    ["with an invalid usage", JSON.stringify({ ...row, usage: { inputTokens: "1" } })],
    ["with an invalid cost", JSON.stringify({ ...row, cost: "1" })],
  ])("with a line %s is refused, by the number of the line", ([, line]) => {
    expect(() => parseLineageJsonl(`${JSON.stringify(row)}\n${line}\n`)).toThrow(
      expect.objectContaining({ code: "INVALID_VALUE", message: "Line 2 is not a row of a lineage export." }),
    );
  });
});
