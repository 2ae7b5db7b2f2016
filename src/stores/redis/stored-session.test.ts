import { expect, test } from "vitest";
import { EMPTY_PATH, emptyHead, type SessionHead } from "../../session/fold.ts";
import { createHeader } from "../../session/header.ts";
import type { HeadPlace } from "../rows/entry-state.ts";
import { nextStamp, readIndexed, readSession, readTimes, writeFacts, writeHead } from "./stored-session.ts";

const header = createHeader({ userId: "ada" });
const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
const path = { ...EMPTY_PATH, depth: 2, turnCount: 2, usage, cost: 0.5, compactionId: "c", thinkingLevel: "high" };
const grown: SessionHead = {
  ...emptyHead(header),
  version: 5,
  leafId: 'b"\u2028',
  path,
  messageCount: 2,
  usage,
  cost: 0.5,
};
const facts = {
  name: "a name",
  firstMessage: "hi",
  openRuns: [{ runId: "run", state: "started" }] as const,
  undone: ["c"],
  statusReason: "done",
};

const places: Readonly<Record<string, HeadPlace>> = {
  "an empty head": { head: emptyHead(header), leafSeq: null, factsSeq: null },
  "a head whose leaf is the last entry": { head: grown, leafSeq: 4, factsSeq: null },
  "a head whose leaf is an earlier entry": { head: grown, leafSeq: 1, factsSeq: 3 },
  "a head that counts more than its path": {
    head: { ...grown, messageCount: 3, usage: { ...usage, cacheReadTokens: 1 }, cost: 0.75 },
    leafSeq: 1,
    factsSeq: 3,
  },
  "a closed head with all that few entries change": {
    head: { ...grown, ...facts, status: "closed", closed: true, updatedAt: "2030-01-01T00:00:00.000Z" },
    leafSeq: 4,
    factsSeq: 4,
  },
};

test.for(Object.entries(places))("reads %s as it was written", ([, place]) => {
  const stamp = nextStamp({ uid: "uid", rev: 6, gen: 2 });
  const changing = [stamp.text, writeHead(place, 2), writeFacts(place.head), "-1", "", null];
  const session = readSession(header.id, ["full", changing, [JSON.stringify(header), "[]"], null], undefined);
  expect(session).toMatchObject({ ...place, stamp, marked: true, deletedAt: null });
  expect(session?.head).toEqual(place.head);
});

test("tells what the index needs of a head without the rest of it", () => {
  const { head } = places["a closed head with all that few entries change"] as HeadPlace;
  const { updatedAt, modifiedAt } = head;
  expect(readTimes(writeHead({ head, leafSeq: 4, factsSeq: 4 }, 0))).toMatchObject({ updatedAt, modifiedAt });
  const runs = { requested: false, started: true, parked: false, due: null };
  expect(readIndexed(writeFacts(head))).toEqual({ status: "closed", runs });
  expect(readIndexed(writeFacts({ ...head, openRuns: [] }))).toEqual({ status: "closed" });
});

test("never names two writes to a session alike", () => {
  const names = Array.from({ length: 100 }, () => nextStamp({ uid: "uid", rev: 1, gen: 0 }).text);
  expect(new Set(names).size).toBe(100);
});
