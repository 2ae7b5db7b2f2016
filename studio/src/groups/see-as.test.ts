import { expect, test } from "vitest";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Message } from "../../../src/session/message.ts";
import { groupTurnOf } from "./group-turn.ts";
import { seeAs } from "./see-as.ts";
import { rolesOf, speakersOf } from "./speakers.ts";

let seq = 0;
function said(id: string, message: Message): Entry {
  return { type: "message", id, parentId: null, timestamp: "2026-01-01T00:00:00.000Z", seq: seq++, message };
}

const spent = { usage: { inputTokens: 5, outputTokens: 5, totalTokens: 10 }, cost: 0.1 };
const path: readonly Entry[] = [
  said("q", { role: "user", content: "A title?" }),
  said("w", { role: "assistant", content: "Rivers", agent: "writer", ...spent }),
  said("c", { role: "assistant", content: "Dull.", agent: "critic", metadata: { visibleTo: ["editor", "critic"] } }),
  said("t", {
    role: "tool",
    toolCallId: "1",
    name: "look",
    content: "found",
    agent: "editor",
    metadata: { visibleTo: ["editor"] },
  }),
  said("f", {
    role: "assistant",
    content: null,
    agent: "editor",
    stopReason: "error",
    metadata: { error: { message: "lost" } },
  }),
  {
    type: "custom",
    id: "p",
    parentId: null,
    timestamp: "",
    seq: 9,
    customType: "group",
    data: { kind: "passed", agent: "editor", usage: { totalTokens: 3 }, cost: 0.01 },
  },
];
const turns = path.map(groupTurnOf).filter((turn) => turn !== null);

test("an agent sees only turns that are visible to it, with the names of the other speakers", () => {
  const { told, hidden } = seeAs("writer", path, []);
  expect(told.slice(0, 2).map(({ entryId }) => entryId)).toEqual(["q", "w"]);
  expect(JSON.stringify(told)).not.toContain("Dull");
  expect(hidden).toBe(3);
  const editor = seeAs("editor", path, []);
  expect(editor.told.map(({ message }) => message.content)).toContain("critic: Dull.");
});

test("an agent sees a summary in place of compacted turns", () => {
  const compaction: Entry = {
    type: "compaction",
    id: "k",
    parentId: "f",
    timestamp: "",
    seq: 20,
    summary: "They spoke of rivers.",
    firstKeptEntryId: "c",
    tokensBefore: 10,
  };
  const { told } = seeAs("critic", [...path, compaction], []);
  expect(told[0]?.message.content).toContain("They spoke of rivers.");
  expect(JSON.stringify(told)).not.toContain("A title?");
  expect(JSON.stringify(seeAs("critic", [...path, compaction], ["k"]))).toContain("A title?");
});

test("counts turns, steps, passes, failures, tokens and cost of each speaker", () => {
  const speakers = speakersOf(turns, []);
  expect(speakers.map(({ agent }) => agent)).toEqual([null, "writer", "critic", "editor"]);
  expect(speakers[1]).toMatchObject({ said: 1, tokens: 10, cost: 0.1 });
  expect(speakers[3]).toMatchObject({ said: 0, steps: 1, passed: 1, failed: 1, tokens: 3, cost: 0.01 });
});

test("takes the roles from the group that contains most of the agents", () => {
  const groups = [
    { name: "one", agents: [{ name: "writer", role: "clerk" }] },
    {
      name: "two",
      agents: [
        { name: "writer", role: "author" },
        { name: "critic", role: "reader" },
      ],
    },
  ];
  expect(rolesOf(["writer", "critic"], groups).get("writer")).toBe("author");
  expect(rolesOf(["nobody"], groups).size).toBe(0);
});

test("returns who may see a turn, and hides a turn with an invalid list from all", () => {
  expect(turns[2]?.visibleTo).toEqual(["editor", "critic"]);
  const odd = groupTurnOf(said("o", { role: "user", content: "", metadata: { visibleTo: 7, hiddenFrom: "critic" } }));
  expect(odd).toMatchObject({ visibleTo: [], hiddenFrom: ["critic"] });
});
