import { expect } from "vitest";
import {
  contentsOf,
  entriesOf,
  eventsOf,
  type LifecycleCase,
  type LifecycleContext,
  outcomesOf,
  refusal,
  settle,
} from "./lifecycle-case.ts";
import { OPERATIONS, type Standing, subjectOf } from "./status-cases.ts";

const DAY = 86_400;

/** The writes that an expired session refuses, and the errors. */
const REFUSALS: Readonly<Record<string, object>> = {
  resume: { code: "SESSION_EXPIRED" },
  open: { code: "SESSION_EXPIRED" },
  addTurn: { code: "SESSION_EXPIRED" },
  suspend: { code: "TRANSITION", from: "expired", to: "suspended" },
  close: { code: "TRANSITION", from: "expired", to: "closed" },
  restore: { code: "SESSION_EXPIRED" },
  merge: { code: "SESSION_EXPIRED" },
  run: { code: "SESSION_EXPIRED" },
};

async function refuseLate(context: LifecycleContext, operation: string, standing: Standing): Promise<void> {
  const { store, manager } = context;
  const consolidated: string[] = [];
  const desk = manager({ consolidator: { consolidate: ({ sessionId }) => consolidated.push(sessionId) } });
  const events = eventsOf(desk);
  const subject = await subjectOf(context, standing);
  context.advance(DAY + 1);
  const { version } = (await store.head(subject.id)) as { version: number };
  for (const _try of [1, 2]) {
    const outcome = await settle(() => OPERATIONS[operation]?.(desk, subject) as PromiseLike<unknown>);
    expect({ operation, outcome }).toMatchObject({ operation, outcome: { error: REFUSALS[operation] } });
  }
  const entries = await entriesOf(store, subject.id);
  expect(entries.slice(version)).toMatchObject([{ type: "status", status: "expired", reason: "expired" }]);
  expect(events.map(({ type }) => type)).toEqual(["expired", "closed"]);
  expect(events.at(-1)).toMatchObject({ sessionId: subject.id, reason: "expired" });
  await desk.settled();
  expect(consolidated).toEqual([subject.id]);
}

/** Expiry of idle sessions. */
export const expiryCases: readonly LifecycleCase[] = [
  {
    name: "reports an expiry to every reader immediately, without writing anything",
    async run(context) {
      const { store, manager, advance } = context;
      const desk = manager();
      await subjectOf(context, "active");
      await subjectOf(context, "suspended");
      await subjectOf(context, "closed");
      advance(DAY + 1);
      const before = await contentsOf(store);
      expect(await desk.getState("s-active")).toMatchObject({ status: "expired", turnCount: 2 });
      expect(await desk.getState("s-suspended")).toMatchObject({ status: "expired" });
      expect(await desk.getState("s-closed")).toMatchObject({ status: "closed" });
      const statuses = async (query: object) => {
        const { items } = await desk.list(query);
        return items
          .filter(({ header }) => header.id.startsWith("s-"))
          .map(({ header, status }) => [header.id, status]);
      };
      expect(Object.fromEntries(await statuses({}))).toEqual({
        ...{ "s-active": "expired", "s-suspended": "expired", "s-closed": "closed" },
      });
      expect(await statuses({ status: "active" })).toEqual([]);
      expect(await statuses({ status: ["suspended", "closed"] })).toEqual([["s-closed", "closed"]]);
      expect(await statuses({ status: "expired" })).toHaveLength(2);
      const preview = await settle(() => desk.merge("s-active", "s-suspended", { dryRun: true }));
      expect(preview).toMatchObject({ error: { code: "SESSION_EXPIRED" } });
      expect(await contentsOf(store)).toEqual(before);
    },
  },
  {
    name: "fills a page with sessions of the wanted status, even if others are between them",
    async run({ manager, advance, store }) {
      const desk = manager();
      for (let i = 0; i < 9; i++) {
        await desk.create({ userId: "ann", id: `s${i}` });
        if (i % 3 === 0) await store.append(`s${i}`, [{ type: "status", status: "closed" }]);
      }
      const pagesOf = async (status: "active" | "closed" | "expired") => {
        const pages: number[] = [];
        let cursor: string | null = null;
        do {
          const page = await desk.list({ status, limit: 2, ...(cursor === null ? {} : { cursor }) });
          pages.push(page.items.length);
          expect(page.items.every((head) => head.status === status)).toBe(true);
          cursor = page.next;
        } while (cursor !== null);
        return pages.reduce((sum, length) => sum + length, 0);
      };
      expect([await pagesOf("active"), await pagesOf("expired")]).toEqual([6, 0]);
      advance(DAY + 1);
      expect([await pagesOf("active"), await pagesOf("closed"), await pagesOf("expired")]).toEqual([0, 3, 6]);
    },
  },
  ...Object.keys(REFUSALS).map((operation) => ({
    name: `${operation} refuses an expired session, and records its expiry once`,
    run: (context: LifecycleContext) => refuseLate(context, operation, operation === "resume" ? "suspended" : "active"),
  })),
  {
    name: "an expired session can be read, get checkpoints and be forked",
    async run(context) {
      const desk = context.manager();
      const { id } = await subjectOf(context, "active");
      context.advance(DAY + 1);
      await desk.checkpoint(id);
      expect(await desk.fork(id, "on")).toMatchObject({ status: "active", turnCount: 2 });
      expect(await context.store.head(id)).toMatchObject({ status: "active" });
    },
  },
  {
    name: "never expires a session if sessionTtl is 0",
    async run({ manager, advance }) {
      const desk = manager({ config: { sessionTtl: 0 } });
      await desk.create({ userId: "ann", id: "s" });
      advance(1000 * DAY);
      expect(await desk.sweep()).toBe(0);
      await desk.addTurn("s", { role: "user", content: "still here" });
      expect(await desk.getState("s")).toMatchObject({ status: "active", turnCount: 1 });
    },
  },
  {
    name: "sweeps only expired sessions, up to its limit",
    async run({ store, manager, advance }) {
      const consolidated: string[] = [];
      const desk = manager({
        config: { sessionTtl: 60 },
        consolidator: { consolidate: ({ sessionId }) => consolidated.push(sessionId) },
      });
      for (const id of ["a", "b", "c", "d", "e"]) await desk.create({ userId: "ann", id });
      await desk.addTurn("a", { role: "user", content: "hello" });
      await desk.suspend("b");
      await desk.close("c");
      expect(await desk.sweep()).toBe(0);
      advance(61);
      const events = eventsOf(desk);
      expect(await desk.sweep({ limit: 3 })).toBe(3);
      expect(await desk.sweep({ limit: 3 })).toBe(1);
      expect(await desk.sweep()).toBe(0);
      const { items } = await store.list({ status: "expired" });
      expect(items.map(({ header }) => header.id).sort()).toEqual(["a", "b", "d", "e"]);
      expect(
        events
          .filter(({ type }) => type === "expired")
          .map(({ sessionId }) => sessionId)
          .sort(),
      ).toEqual([...["a", "b", "d", "e"]]);
      expect(await desk.settled()).toBe(true);
      expect(consolidated.sort()).toEqual(["a", "b", "c", "d", "e"]);
      await expect(desk.sweep({ limit: 0 })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    },
  },
  {
    name: "expires each session once, also with concurrent sweeps",
    async run({ store, manager, advance }) {
      const consolidated: string[] = [];
      const consolidator = { consolidate: ({ sessionId }: { sessionId: string }) => consolidated.push(sessionId) };
      const desks = [1, 2, 3].map(() => manager({ config: { sessionTtl: 60 }, consolidator }));
      const ids = Array.from({ length: 20 }, (_, i) => `s${i}`);
      for (const id of ids) await desks[0]?.create({ userId: "ann", id });
      advance(61);
      const events = desks.flatMap((desk) => [eventsOf(desk)]);
      const counts = await Promise.all(desks.map((desk) => desk.sweep()));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20);
      const expired = events.flat().filter(({ type }) => type === "expired");
      expect(expired.map(({ sessionId }) => sessionId).sort()).toEqual(ids.toSorted());
      await Promise.all(desks.map((desk) => desk.settled()));
      expect(consolidated.sort()).toEqual(ids.toSorted());
      for (const id of ids) expect(await entriesOf(store, id)).toHaveLength(1);
    },
  },
  {
    name: "lets either a turn or the expiry win, never both, if they are concurrent",
    async run({ store, manager, advance }) {
      const [late, early] = [manager({ config: { sessionTtl: 60 } }), manager({ config: { sessionTtl: 0 } })];
      const ids = Array.from({ length: 10 }, (_, i) => `s${i}`);
      for (const id of ids) await early.create({ userId: "ann", id });
      advance(61);
      const turns = ids.map((id) => early.addTurn(id, { role: "user", content: "in time" }));
      const [expired, outcomes] = await Promise.all([late.sweep(), outcomesOf(turns)]);
      expect((outcomes.ok ?? 0) + (outcomes.SESSION_EXPIRED ?? 0)).toBe(10);
      expect(expired).toBe(await store.count({ status: "expired" }));
      for (const id of ids) {
        const types = (await entriesOf(store, id)).map(({ type }) => type);
        expect([["message"], ["status"], ["message", "status"]]).toContainEqual(types);
      }
    },
  },
  {
    name: "does not expire a session that was resumed or deleted meanwhile",
    async run({ store, manager, advance }) {
      const desk = manager({ config: { sessionTtl: 60 } });
      await desk.create({ userId: "ann", id: "s" });
      advance(61);
      expect(await outcomesOf([desk.sweep(), desk.delete("s")])).toEqual({ ok: 2 });
      const error = await refusal(store, () => desk.addTurn("s", { role: "user", content: "late" }));
      expect(error.code).toBe("SESSION_NOT_FOUND");
    },
  },
];
