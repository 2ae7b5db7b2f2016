import fc from "fast-check";
import { expect, test } from "vitest";
import { message, user as said } from "../../../test/sample-log.ts";
import { openLog } from "../../../test/sample-run-log.ts";
import type { Entry } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { Session } from "../../session/value/session.ts";
import type { ReadOptions, SessionStore } from "../../session/store.ts";
import { type RowInit, Transcript } from "../../session/value/transcript.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { SessionTree } from "../../tree/session-tree.ts";

const ENTRIES_MAX = 8;

// Whatever a user session has in common with a log (its rows in order, in another order, of other branches, from an
// origin that is no longer the leaf), the log below the run's entries must have the messages that the run was given.
test("the path from which a run continues has exactly the messages that the run works on, for any user session", async () => {
  const place = fc.nat({ max: ENTRIES_MAX - 1 });
  const row = fc.oneof(place, fc.constant("new" as const));
  const parents = fc.array(fc.option(place), { minLength: 1, maxLength: ENTRIES_MAX });
  await fc.assert(
    fc.asyncProperty(
      parents,
      fc.option(place),
      fc.array(row, { minLength: 1, maxLength: 6 }),
      async (branches, from, rows) => {
        const store = openMemoryStore();
        await store.create(createHeader({ id: "a" }));
        for (const [index, parent] of branches.entries()) {
          const onto = parent === null ? null : `m${Math.min(parent, index - 1)}`;
          if (index > 0) await store.append("a", [{ type: "leaf", targetId: onto }]);
          await store.append("a", [message(`m${index}`, said(`${index}`))]);
        }
        const tree = await SessionTree.on(store, "a");
        const stored = (place: number): RowInit => {
          const index = place % branches.length;
          return { id: `m${index}`, message: said(`${index}`) };
        };
        if (from !== null) await tree.branch(stored(from).id as string);
        const begun = from === null ? Transcript.empty : (await tree.toSession()).transcript;
        if (from !== null) await tree.branch(null);
        const added = rows.map((each, index) =>
          each === "new" ? { id: `n${index}`, message: said("new") } : stored(each),
        );
        const { log, user } = await openLog(tree, Session.of(begun.appendAll(added)));
        const path = await tree.getBranch(log.origin()?.entryId);
        const kept = path.flatMap((entry) => (entry.type === "message" ? [entry.message.content] : []));
        expect(kept).toEqual(user.transcript.toMessages().map(({ content }) => content));
        await log.abandon();
      },
    ),
    { numRuns: 300 },
  );
});

test("a run that starts with a new message reads the session's messages once", async () => {
  const { store, readCount } = countingStore();
  await store.create(createHeader({ id: "a" }));
  const turns = 500;
  await store.append(
    "a",
    Array.from({ length: turns }, (_, index) => message(`m${index}`, said(`${index}`))),
  );
  const { log, user } = await openLog({ store, sessionId: "a" }, Session.of(Transcript.of([{ message: said("new") }])));
  expect(user.transcript.length).toBe(turns + 1);
  expect(readCount()).toBe(turns);
  await log.abandon();
});

function countingStore(): { readonly store: SessionStore; readonly readCount: () => number } {
  const inner = openMemoryStore();
  let count = 0;
  async function* read(sessionId: string, options?: ReadOptions): AsyncGenerator<Entry> {
    for await (const entry of inner.read(sessionId, options)) {
      count += 1;
      yield entry;
    }
  }
  const store = new Proxy(inner, {
    get: (target, key) => {
      if (key === "read") return read;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { store, readCount: () => count };
}
