import { describe, expect, test } from "vitest";
import { header, SampleLog, timeAt, user } from "../../test/sample-log.ts";
import { emptyHead } from "./log/fold.ts";
import type { SessionHeader } from "./log/header.ts";
import { summaryOf } from "./listing.ts";
import { compareForListing, listPosition, matchesQuery, parentsOf } from "./query.ts";

const headOf = (init: Partial<SessionHeader> = {}) => emptyHead(header(init));
const lineage = { parents: ["p1", "p2"], operator: "merge", kind: "op_merge", extras: [] } as const;

describe("matchesQuery", () => {
  test("with an empty query accepts every session", () => {
    expect(matchesQuery(headOf(), {})).toBe(true);
    expect(matchesQuery(headOf(), { limit: 1, cursor: "c" })).toBe(true);
  });

  test("compares the user and the cwd exactly", () => {
    const head = headOf({ userId: "u", cwd: "/a" });
    expect(matchesQuery(head, { userId: "u", cwd: "/a" })).toBe(true);
    expect(matchesQuery(head, { userId: "U" })).toBe(false);
    expect(matchesQuery(head, { cwd: "/a/b" })).toBe(false);
    expect(matchesQuery(head, { cwd: "/" })).toBe(false);
    expect(matchesQuery(headOf(), { userId: "u" })).toBe(false);
  });

  test("accepts one status or several", () => {
    const head = { ...headOf(), status: "closed" as const };
    expect(matchesQuery(head, { status: "closed" })).toBe(true);
    expect(matchesQuery(head, { status: ["active", "closed"] })).toBe(true);
    expect(matchesQuery(head, { status: "active" })).toBe(false);
    expect(matchesQuery(head, { status: [] })).toBe(false);
  });

  test("finds a parent by lineage or by fork", () => {
    const forked = headOf({ lineage, forkedFrom: { sessionId: "source", entryId: null, version: 0 } });
    for (const parentId of ["p1", "p2", "source"]) expect(matchesQuery(forked, { parentId })).toBe(true);
    expect(matchesQuery(forked, { parentId: "sample" })).toBe(false);
    expect(matchesQuery(headOf(), { parentId: "p1" })).toBe(false);
  });
});

test("parentsOf names each parent once", () => {
  const forkedFrom = { sessionId: "p1", entryId: null, version: 0 };
  expect(parentsOf(headOf({ lineage, forkedFrom }))).toEqual(["p1", "p2"]);
  expect(parentsOf(headOf())).toEqual([]);
});

test("a listing shows the latest message first, and equal times by id", () => {
  const positions = [
    { modifiedAt: timeAt(1), id: "b" },
    { modifiedAt: timeAt(2), id: "a" },
    { modifiedAt: timeAt(1), id: "c" },
    { modifiedAt: timeAt(1), id: "B" },
  ];
  expect(positions.sort(compareForListing).map(({ id }) => id)).toEqual(["a", "c", "b", "B"]);
  expect(compareForListing({ modifiedAt: "t", id: "a" }, { modifiedAt: "t", id: "a" })).toBe(0);
});

test("a listing is sorted by the time of the last message, not of the last append", () => {
  const log = new SampleLog();
  log.append([{ type: "message", message: user("1"), timestamp: timeAt(5) }]);
  log.append([{ type: "session_info", name: "n" }]);
  expect(listPosition(log.head)).toEqual({ modifiedAt: timeAt(5), id: "sample" });
});

test("a row of a listing is computed from the log, and has the file's path if there is one", () => {
  const log = new SampleLog({ userId: "u", cwd: "/a" }).say({ a: user("hello") });
  log.append([{ type: "session_info", name: "n" }]);
  const row = {
    id: "sample",
    name: "n",
    cwd: "/a",
    userId: "u",
    createdAt: timeAt(0),
    modifiedAt: timeAt(0),
    messageCount: 1,
    firstMessage: "hello",
    status: "active",
    closed: false,
  };
  expect(summaryOf(log.head)).toEqual(row);
  expect(summaryOf(log.head, "/s.jsonl")).toEqual({ ...row, path: "/s.jsonl" });
});
