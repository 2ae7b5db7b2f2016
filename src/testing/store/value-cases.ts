import assert from "node:assert/strict";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { ENTRY_BYTES_MAX } from "../../session/limits.ts";
import type { SessionStore } from "../../session/store.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { entriesOf, headOf, make, refuses, unchanged } from "./store-checks.ts";
import { user } from "./drafts.ts";

const TEXTS: readonly [what: string, text: string][] = [
  ["line separators", "a\u2028b\u2029c\u0085d\r\ne\nf\u000bg"],
  ["emoji and combining marks", "👩‍👩‍👧‍👦 e\u0301 ﷽ 𝔘𝔫𝔦"],
  ["a NUL and other control characters", "a\u0000b\u0001\u001b[0m\u007f"],
  ["half of a surrogate pair", "a\ud800b\udc00 \udfff"],
  ["quotes, backslashes and markup", `"'\\\\\\" \${x} <script>--; DROP TABLE entries; \u0025s`],
  ["a byte order mark and noncharacters", "\ufeffa\ufffe\uffff\ufffd"],
  ["no characters", ""],
];

const SCHEMA = { type: "object", properties: { zone: {}, a: {}, mm: {} }, required: ["zone"], $id: "x" };

/** The values that a provider must get back byte for byte: tools, its own data, arguments. */
const ORDERED: readonly EntryDraft[] = [
  { type: "setup", agent: "clerk", tools: [{ name: "look", description: "Looks.", parameters: SCHEMA }], id: "1" },
  {
    type: "message",
    message: {
      role: "assistant",
      content: [{ type: "text", text: "Yes." }],
      toolCalls: [{ id: "c", name: "look", arguments: '{"zone": 1, "a":2}' }],
      providerData: { reasoning: [{ type: "reasoning", id: "r", encrypted_content: "e" }], b: 1, a: { d: 1, c: 2 } },
    },
    id: "2",
  },
];

async function returnsOrdered(store: SessionStore): Promise<void> {
  const [setup, answer] = await entriesOf(store, "a");
  assert.ok(setup?.type === "setup" && answer?.type === "message");
  const [setupDraft, answerDraft] = ORDERED;
  assert.ok(setupDraft?.type === "setup" && answerDraft?.type === "message");
  assert.equal(JSON.stringify(setup.tools), JSON.stringify(setupDraft.tools));
  assert.equal(JSON.stringify(answer.message), JSON.stringify(answerDraft.message));
}

/** Cases: values that a store accepts and returns unchanged. */
export const valueCases: readonly StoreCase[] = [
  ...TEXTS.map(
    ([what, text]): StoreCase => ({
      name: `returns a text with ${what} unchanged`,
      async run({ store }) {
        await make(store, "a", { metadata: { text } });
        await store.append("a", [
          user(text, { id: "1" }),
          { type: "custom", customType: "t", data: { text, list: [text] }, id: "2" },
        ]);
        const [first, second] = await entriesOf(store, "a");
        assert.ok(first?.type === "message" && second?.type === "custom");
        assert.equal(first.message.content, text);
        assert.deepEqual(second.data, { text, list: [text] });
        assert.deepEqual((await headOf(store, "a")).header.metadata, { text });
        assert.deepEqual(await store.getEntry("a", "1"), first);
        await checkHeadIsFold(store, "a");
      },
    }),
  ),
  {
    name: "returns every text unchanged after the store was reopened",
    needs: "durable",
    async run(context) {
      await make(context.store, "a");
      const { entries } = await context.store.append(
        "a",
        TEXTS.map(([, text]) => user(text)),
      );
      await context.store.close();
      const store = await openAgain(context);
      assert.deepEqual(await entriesOf(store, "a"), entries);
    },
  },
  {
    name: "returns numbers and nested values unchanged",
    async run({ store }) {
      await make(store, "a");
      let deep: object = { end: true };
      for (let i = 0; i < 150; i++) deep = i % 2 === 0 ? { deep } : [deep];
      const data = {
        numbers: [0, 0.1, -1.5e-7, 1e21, 2 ** 53 - 1, Number.MAX_VALUE, 5e-324],
        none: [null, [], {}],
        "": "",
        deep,
      } as never;
      await store.append("a", [{ type: "custom", customType: "t", data, id: "1" }]);
      const entry = await store.getEntry("a", "1");
      assert.ok(entry?.type === "custom");
      assert.deepEqual(entry.data, data);
    },
  },
  {
    name: "returns the keys of objects in their order",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", ORDERED);
      await returnsOrdered(store);
    },
  },
  {
    name: "returns the keys of objects in their order after the store was reopened",
    needs: "durable",
    async run(context) {
      await make(context.store, "a");
      await context.store.append("a", ORDERED);
      await context.store.close();
      await returnsOrdered(await openAgain(context));
    },
  },
  {
    name: "returns a message of one megabyte unchanged",
    async run({ store }) {
      await make(store, "a");
      const text = "0123456789abcdé€".repeat(65_536);
      await store.append("a", [user(text, { id: "1" }), user("after", { id: "2" })]);
      const [first, second] = await entriesOf(store, "a");
      assert.ok(first?.type === "message" && first.message.content === text, "the text differs");
      assert.equal(second?.parentId, "1");
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "refuses an entry that is too large, and does not change the session",
    async run({ store }) {
      await makeThree(store);
      const tooLarge = user("x".repeat(ENTRY_BYTES_MAX), { id: "big" });
      await unchanged(store, "a", () => refuses(store.append("a", [user("before"), tooLarge]), "TOO_LARGE"));
      assert.equal((await store.append("a", [user("next")])).version, 4);
    },
  },
  {
    name: "refuses values that JSON cannot represent, and does not change the session",
    async run({ store }) {
      await makeThree(store);
      const cycle: Record<string, unknown> = {};
      cycle.self = cycle;
      const values = [
        () => 1,
        1n,
        cycle,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        new Date(),
        Symbol("s"),
        new Map(),
        JSON.parse('{"__proto__": 1}'),
      ];
      for (const value of values) {
        const draft = { type: "custom", customType: "t", data: { nested: [value] } } as unknown as EntryDraft;
        await unchanged(store, "a", () => refuses(store.append("a", [user("before"), draft]), "INVALID_VALUE"));
      }
    },
  },
  {
    name: "stored data does not change when the caller later modifies its arguments",
    async run({ store }) {
      const metadata = { tags: ["a"] };
      const header = { ...createHeader({ id: "a" }), metadata };
      const content = [{ type: "text" as const, text: "before" }];
      const draft = { type: "message" as const, id: "1", message: { role: "user" as const, content } };
      const drafts = [draft];
      await store.create(header);
      const appending = store.append("a", drafts);
      content[0] = { type: "text", text: "after" };
      draft.id = "2";
      drafts.push(draft);
      metadata.tags.push("b");
      await appending;
      const [entry] = await entriesOf(store, "a");
      assert.deepEqual(entry?.type === "message" && entry.message.content, [{ type: "text", text: "before" }]);
      const head = await headOf(store, "a");
      assert.deepEqual([head.version, head.header.metadata], [1, { tags: ["a"] }]);
    },
  },
  {
    name: "stored data does not change when the caller modifies returned values",
    async run({ store }) {
      const given: readonly (() => Promise<unknown>)[] = [
        () => store.head("a"),
        () => entriesOf(store, "a"),
        () => store.getEntry("a", "1"),
        () => store.path("a", "1"),
        () => store.path("a", "2"),
        async () => store.settings("a", (await headOf(store, "a")).path),
        () => store.list(),
        () => store.listExpired("9999-01-01T00:00:00.000Z", 10),
        () => store.search("one"),
        () => store.append("a", []),
      ];
      tryToModify(await store.create(createHeader({ id: "a", metadata: { tags: ["a"] } })));
      const variables = { type: "variables", set: { k: { deep: 1 } }, unset: [], activeTools: ["t"], id: "2" } as const;
      const appended = await store.append("a", [user("one", { id: "1" }), variables, user("three", { id: "3" })]);
      const text = JSON.stringify(appended.head);
      tryToModify(appended);
      assert.equal(JSON.stringify(await store.head("a")), text);
      for (const give of given) {
        const value = await give();
        const before = JSON.stringify(value);
        tryToModify(value);
        assert.equal(JSON.stringify(await give()), before);
      }
      tryToModify(await store.fork("a", createHeader({ id: "f" })));
      for (const id of ["a", "f"]) await checkHeadIsFold(store, id);
      assert.deepEqual((await headOf(store, "a")).header.metadata, { tags: ["a"] });
    },
  },
];

/** Tries to modify a value in every possible way. */
function tryToModify(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value)) {
    const inner: unknown = Reflect.get(value, key);
    tryToModify(inner);
    if (typeof inner !== "object") Reflect.set(value, key, "vandalized");
  }
  Reflect.set(value, "vandalized", true);
}
