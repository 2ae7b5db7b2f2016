import type { LineageNodeView } from "skein/client";
import { expect, test } from "vitest";
import { kindOf, shortId, titleOf, totalOf } from "./describe-session.ts";

const plain: LineageNodeView = {
  id: "source",
  name: "Plan",
  branchName: null,
  lineage: { parents: [], operator: "", kind: "unknown", extras: [] },
  status: "active",
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  cost: 0.5,
  createdAt: null,
};
const fork: LineageNodeView = {
  ...plain,
  id: "fork",
  branchName: "try",
  lineage: { parents: ["source"], operator: "fork", kind: "op_fork", extras: [] },
};
const byId = new Map([[plain.id, plain]]);

test("names a fork by its branch until it is renamed", () => {
  expect(titleOf(fork, byId)).toBe("try · Plan");
  expect(titleOf({ ...fork, name: "Better plan" }, byId)).toBe("Better plan");
  expect(titleOf({ ...plain, name: null, id: "01a1defd-f23b-74c4" }, byId)).toBe("Session …23b-74c4");
});

test("returns how a session was made, and that a missing one is missing", () => {
  expect([plain, fork, { ...plain, lineage: null }].map(kindOf)).toEqual(["session", "fork", "missing"]);
});

test("sums up the known tokens and costs, and keeps short ids", () => {
  expect(totalOf({ nodes: [plain, fork, { ...plain, usage: null, cost: null }] })).toEqual({ tokens: 4, cost: 1 });
  expect(shortId("short")).toBe("short");
});
