import { describe, expect, test } from "vitest";
import type { LineageKind } from "../log/header.ts";
import { parseLineageJsonl, toJsonl } from "./lineage-export.ts";
import { lineageUsage } from "./lineage.ts";
import { operation, Session } from "../value/session.ts";
import { userRow } from "../value/transcript.ts";

const spent = (tokens: number) => ({ inputTokens: tokens, outputTokens: tokens, totalTokens: 2 * tokens });

/** A session made by an operation of a kind, with its spending. */
function made(kind: LineageKind, source: Session, tokens: number, cost: number): Session {
  return Session.derive(source, source.transcript.append(userRow("more")), {
    lineage: operation(kind, "test", [source.id]),
    usage: { ...spent(tokens), ...(tokens > 5 ? { cacheReadTokens: tokens } : {}) },
    cost,
  });
}

describe("lineageUsage", () => {
  const start = Session.fromUserMessage("Go");
  const first = made("op_session_loop", start, 1, 0.5);
  const [left, right] = [made("op_session_loop", first, 10, 1), made("op_session_compress", first.fork(), 100, 2)];
  const merged = left.merge(right);
  const end = made("op_session_loop", merged.fork(), 1000, 4);
  const all = [start, first, left, right, merged, end];

  test("sums the spending of a session and all ancestors, each once, and nothing for a merge", () => {
    // The forks are not among the sessions given, so the way up from `right` and `end` ends there.
    expect(lineageUsage(all, left.id)).toEqual({ usage: { ...spent(11), cacheReadTokens: 10 }, cost: 1.5 });
    expect(lineageUsage(all, merged.id)).toEqual({ usage: { ...spent(111), cacheReadTokens: 110 }, cost: 3.5 });
    expect(merged.usage).toEqual({ ...spent(110), cacheReadTokens: 110 });
  });

  test("counts a common ancestor of both sides of a merge once, and a merge of merges too", () => {
    const again = left.merge(merged).merge(right);
    expect(lineageUsage([...all, again, left.merge(merged)], again.id).cost).toBe(2);
    const [a, b] = [made("op_session_loop", first, 10, 1), made("op_session_loop", first, 20, 2)];
    const both = a.merge(b);
    const twice = both.merge(a);
    expect(lineageUsage([start, first, a, b, both, twice], twice.id)).toEqual({
      usage: { ...spent(31), cacheReadTokens: 30 },
      cost: 3.5,
    });
  });

  test("is 0 for a session without spending, and refused for an unknown one", () => {
    expect(lineageUsage(all, start.id)).toEqual({ usage: spent(0), cost: 0 });
    expect(() => lineageUsage(all, "nobody")).toThrow(
      expect.objectContaining({ code: "LINEAGE", sessionId: "nobody" }),
    );
  });

  test("is the same from the rows of an export, and accepts any iterable", () => {
    const rows = parseLineageJsonl(toJsonl(all));
    expect(lineageUsage(rows, merged.id)).toEqual(lineageUsage(new Set(all).values(), merged.id));
  });
});
