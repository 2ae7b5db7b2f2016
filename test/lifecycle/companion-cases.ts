import { expect } from "vitest";
import { collectWarnings } from "../sample-run.ts";
import type { FailureContext } from "../../src/lifecycle/report-failure.ts";
import { entriesOf, type LifecycleCase } from "./lifecycle-case.ts";

const never = (): Promise<never> => new Promise(() => {});
const hello = { role: "user", content: "hello" } as const;

/** Memory, consolidator and listeners are called after the write, and cannot break it. */
export const companionCases: readonly LifecycleCase[] = [
  {
    name: "emits every event after the write is durable",
    async run({ store, manager, advance }) {
      const desk = manager({ config: { autoCheckpointInterval: 1, sessionTtl: 60 } });
      const seen: Promise<unknown>[] = [];
      const { events } = desk;
      const status = async (id: string) => (await store.head(id))?.status;
      events.on("created", ({ sessionId }) => seen.push(status(sessionId)));
      events.on("turnAdded", ({ sessionId, turn }) => seen.push(store.getEntry(sessionId, turn.turnId)));
      events.on("checkpointCreated", ({ checkpoint }) => seen.push(store.loadCheckpoint(checkpoint.id)));
      events.on("suspended", ({ sessionId }) => seen.push(status(sessionId)));
      events.on("resumed", ({ sessionId }) => seen.push(status(sessionId)));
      events.on("closed", ({ sessionId }) => seen.push(status(sessionId)));
      const acts: (() => Promise<unknown>)[] = [
        () => desk.create({ userId: "ann", id: "s" }),
        () => desk.addTurn("s", { ...hello, turnId: "t" }),
        () => desk.suspend("s"),
        () => desk.resume("s"),
        () => desk.close("s"),
        () => desk.create({ userId: "ann", id: "late" }),
      ];
      for (const act of acts) {
        await act();
        // A read that a listener has started must not see the next write.
        await Promise.all(seen);
      }
      advance(61);
      await desk.sweep();
      const [checkpoint] = await store.listCheckpoints("s");
      expect(await Promise.all(seen)).toMatchObject([
        ...["active", { id: "t", message: hello }, checkpoint, "suspended", "active", "closed"],
        ...["active", "expired"],
      ]);
    },
  },
  {
    name: "passes each turn to the memory, and each ended session to the consolidator",
    async run({ manager }) {
      const remembered: unknown[] = [];
      const consolidated: unknown[] = [];
      const memory = { add: (entry: unknown) => remembered.push(entry) };
      const consolidator = { consolidate: (session: unknown) => consolidated.push(session) };
      const desk = manager({ memory, consolidator });
      await desk.create({ userId: "ann", id: "s" });
      await desk.addTurn("s", { ...hello, turnId: "t1" });
      await desk.addTurn("s", { role: "assistant", content: "hi", turnId: "t2" });
      await desk.close("s");
      expect(await desk.settled()).toBe(true);
      const turns = (await desk.getState("s"))?.turns;
      expect(remembered).toEqual(turns?.map((turn) => ({ sessionId: "s", userId: "ann", turn })));
      expect(consolidated).toEqual([{ sessionId: "s", turns }]);
      const silent = manager({ consolidator, config: { consolidateOnClose: false } });
      await silent.create({ userId: "ann", id: "other" });
      await silent.close("other");
      expect(await silent.settled()).toBe(true);
      expect(consolidated).toHaveLength(1);
    },
  },
  {
    name: "completes every operation even if memory, consolidator and listeners throw, reject or hang",
    async run({ store, manager, advance }) {
      const fail = (message: string) => () => {
        throw new Error(message);
      };
      const ways = [fail("thrown"), async () => fail("rejected")(), never];
      for (const [index, way] of ways.entries()) {
        const failures: FailureContext[] = [];
        const desk = manager({
          config: { sessionTtl: 60 },
          memory: { add: way },
          consolidator: { consolidate: way },
          onError: (_error, context) => failures.push(context),
        });
        for (const type of ["created", "turnAdded", "closed", "expired"] as const) desk.events.on(type, way);
        const heard: string[] = [];
        desk.events.on("closed", ({ sessionId }) => heard.push(sessionId));
        const [id, idle] = [`s${index}`, `idle${index}`];
        await desk.create({ userId: "ann", id });
        await desk.create({ userId: "ann", id: idle });
        await desk.addTurn(id, hello);
        await desk.close(id);
        advance(61);
        expect(await desk.sweep()).toBe(1);
        expect(await desk.settled({ timeoutMs: 50 })).toBe(way !== never);
        expect(await store.head(id)).toMatchObject({ status: "closed", messageCount: 1 });
        expect(await store.head(idle)).toMatchObject({ status: "expired" });
        expect(heard).toEqual([id, idle]);
        const during = failures.map((failure) => failure.during).sort();
        expect(during).toEqual(
          way === never ? [] : ["consolidator", "consolidator", ...Array<string>(6).fill("listener"), "memory"],
        );
        advance(-61);
      }
    },
  },
  {
    name: "keeps a turn whose checkpoint failed, and reports the failure",
    async run({ store, manager }) {
      const warnings = collectWarnings();
      const failures: [unknown, FailureContext][] = [];
      const desk = manager({
        config: { autoCheckpointInterval: 2 },
        ids: () => "",
        onError: (...failure) => {
          failures.push(failure);
          throw new Error("the report fails, too");
        },
      });
      await desk.create({ userId: "ann", id: "s" });
      for (const _turn of [1, 2, 3]) await desk.addTurn("s", hello);
      expect(failures).toMatchObject([[{ code: "INVALID_ID" }, { during: "auto-checkpoint", sessionId: "s" }]]);
      expect(await entriesOf(store, "s")).toHaveLength(3);
      await warnings.settled();
      expect(warnings.messages).toEqual([
        expect.stringContaining("The auto-checkpoint of session s failed"),
        expect.stringContaining("the report fails, too"),
      ]);
    },
  },
  {
    name: "makes automatic checkpoints at the configured interval, up to the limit",
    async run({ store, manager }) {
      const desk = manager({ config: { autoCheckpointInterval: 2, maxCheckpointsPerSession: 2 } });
      for (const autoCheckpointInterval of [null, 0]) {
        const silent = manager({ config: { autoCheckpointInterval } });
        const { sessionId } = await silent.create({ userId: "ann" });
        for (let i = 0; i < 12; i++) await silent.addTurn(sessionId, hello);
        expect(await store.listCheckpoints(sessionId)).toEqual([]);
      }
      await desk.create({ userId: "ann", id: "s" });
      const made: [number, boolean][] = [];
      desk.events.on("checkpointCreated", ({ checkpoint, automatic }) => made.push([checkpoint.version, automatic]));
      for (let i = 0; i < 7; i++) await desk.addTurn("s", hello);
      await desk.checkpoint("s");
      expect(made).toEqual([...[2, 4, 6].map((version) => [version, true]), [7, false]]);
      expect((await store.listCheckpoints("s")).map(({ version }) => version)).toEqual([6, 7]);
    },
  },
];
