import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/internal/json.ts";
import { offline } from "../../src/models/index.ts";
import { createAgent } from "../../src/agent/agent.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { answering } from "./runs-agents.ts";
import { logOf, nextOf, openRunServer } from "./runs-server.ts";

const SLOW = { type: "string", pattern: "^(a+)+$" };
const ANSWER = JSON.stringify({ value: `${"a".repeat(60)}!` });

/** Schemas that hold a pattern where a check of the schema might not look. */
const HIDDEN: readonly (readonly [string, JsonObject])[] = [
  ["a const", { properties: { x: { const: SLOW } }, $ref: "#/properties/x/const" }],
  ["an enum", { properties: { x: { enum: [SLOW] } }, allOf: [{ $ref: "#/properties/x/enum/0" }] }],
  ["a default", { default: SLOW, anyOf: [{ $ref: "#/default" }] }],
  ["examples", { examples: [SLOW], $ref: "#/examples/0" }],
  ["an unknown keyword", { "x-kept": SLOW, $ref: "#/x-kept" }],
  ["$defs", { $defs: { a: SLOW }, $ref: "#/$defs/a" }],
  ["$defs under an encoded name", { $defs: { "a/b c": SLOW }, $ref: "#/%24defs/a~1b%20c" }],
  ["an anchor", { $defs: { a: { $anchor: "here", ...SLOW } }, $ref: "#here" }],
  ["a dynamic anchor", { $defs: { a: { $dynamicAnchor: "here", ...SLOW } }, $dynamicRef: "#here" }],
  ["a nested $id", { $defs: { a: { $id: "urn:a", $defs: { b: SLOW } } }, $ref: "#/$defs/a/$defs/b" }],
  ["propertyNames", { propertyNames: SLOW }],
  ["else", { if: false, else: SLOW }],
];

describe("a pattern that an output of a request hides is refused", () => {
  test.for(HIDDEN)("in %s", async ([, output]) => {
    const { client, sessionId, store } = await openRunServer({ agents: { helper: answering([ANSWER]) } });
    const before = await logOf(store, sessionId);
    await expect(client.runs.start(sessionId, { input: "Go.", output })).rejects.toMatchObject({ status: 400 });
    expect(await logOf(store, sessionId)).toEqual(before);
  });
});

/** A session whose log holds a request of an earlier version, which nothing has refused. */
async function storeWith(output: JsonObject, ...more: readonly EntryDraft[]) {
  const store = openMemoryStore();
  const id = "old";
  await store.create(createHeader({ id, userId: "ann" }));
  const request = { type: "run_request", id: "run:old", runId: "old", input: "Go.", options: { output } } as const;
  await store.append(id, [{ ...request, agent: "helper" }, ...more]);
  return store;
}

/** The error that the log records for the run. */
async function errorIn(store: SessionStore): Promise<unknown> {
  for await (const entry of store.read("old", { reverse: true })) if (entry.type === "run") return entry.error;
  return null;
}

describe("a stored request with an invalid output schema ends with its error when it is claimed", () => {
  const started = { type: "run", runId: "old", phase: "started", claim: 1 } as const;
  const input = { type: "message", message: { role: "user", content: "Go." } } as const;
  test.for([
    ["that nobody has begun", []],
    ["that a process began and did not end", [input, started]],
  ] as const)("one %s", async ([, more]) => {
    const store = await storeWith(HIDDEN[0]?.[1] ?? {}, ...more);
    const { client } = await openRunServer({ store, agents: { helper: answering([ANSWER]) } });
    await nextOf(client, { sessionId: "old", runId: "old" }, "run-failed");
    expect(await client.runs.get("old", "old")).toMatchObject({ status: "failed" });
    expect(await errorIn(store)).toMatchObject({ code: "INVALID_OPTION" });
    expect((await store.head("old"))?.openRuns).toEqual([]);
  });

  test("one whose pattern backtracks, with a model's answer and with the offline model's", async () => {
    const agents = {
      helper: answering([ANSWER, ANSWER, ANSWER]),
      offline: createAgent({ prompt: "Help.", model: offline() }),
    };
    for (const agent of ["helper", "offline"] as const) {
      const store = await storeWith({ type: "string", minLength: 60, pattern: "^(x+)+!$|^(a+)+$" });
      const { client } = await openRunServer({ store, agents: { helper: agents[agent] } });
      await nextOf(client, { sessionId: "old", runId: "old" }, "run-failed");
      expect(await errorIn(store)).toMatchObject({ code: "OUTPUT_INVALID" });
    }
  });
});
