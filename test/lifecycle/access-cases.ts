import { expect } from "vitest";
import type { Actor } from "../../src/lifecycle/access.ts";
import { createAgent } from "../../src/agent/agent.ts";
import { scripted } from "../../src/models/scripted.ts";
import { contentsOf, gate, type LifecycleCase, refusal, settle } from "./lifecycle-case.ts";
import { OPERATIONS, subjectOf } from "./status-cases.ts";

/** Everything that a caller can learn from an outcome, without the id of the session. */
function shown(outcome: { readonly value: unknown } | { readonly error: unknown }, ...ids: readonly string[]): string {
  const { error } = outcome as { error?: Error };
  const facts =
    error === undefined
      ? outcome
      : { ...error, name: error.name, message: error.message, class: error.constructor.name };
  return ids.reduce((text, id) => text.replaceAll(id, "*"), JSON.stringify(facts));
}

/** Access by user. */
export const accessCases: readonly LifecycleCase[] = [
  {
    name: "returns the same result for another user's session as for a missing one, in every operation",
    async run(context) {
      const foreign = await subjectOf(context, "foreign");
      const missing = await subjectOf(context, "missing");
      const manager = context.manager();
      for (const [operation, call] of Object.entries(OPERATIONS)) {
        const [one, other] = [await settle(() => call(manager, foreign)), await settle(() => call(manager, missing))];
        const ids = (subject: typeof foreign) => [subject.id, subject.checkpointId, subject.branchId];
        expect({ operation, shown: shown(one, ...ids(foreign)) }).toEqual({
          operation,
          shown: shown(other, ...ids(missing)),
        });
      }
    },
  },
  {
    name: "hides checkpoints and branches of another user, too",
    async run(context) {
      const { manager, store } = context;
      const desk = manager();
      const own = await subjectOf(context, "active");
      const foreign = await subjectOf(context, "foreign");
      const actor = "ann";
      const fork = await refusal(store, () => desk.fork(own.id, "b", { actor, fromCheckpoint: foreign.checkpointId }));
      expect(fork).toMatchObject({ code: "CHECKPOINT_NOT_FOUND", checkpointId: foreign.checkpointId });
      const given = await refusal(store, () =>
        desk.fork(own.id, "mine", { actor, userId: "bob" } as { actor: string }),
      );
      expect(given).toMatchObject({ code: "INVALID_OPTION" });
      for (const dryRun of [false, true]) {
        const merge = await refusal(store, () => desk.merge(own.id, foreign.id, { actor, dryRun }));
        expect(merge).toMatchObject({ code: "SESSION_NOT_FOUND", sessionId: foreign.id });
        const missing = await refusal(store, () => desk.merge(own.id, "s-missing", { actor, dryRun }));
        expect(missing).toMatchObject({ code: "SESSION_NOT_FOUND", sessionId: "s-missing" });
      }
    },
  },
  {
    name: "does not tell a user that the session of another is busy",
    async run({ manager }) {
      const desk = manager();
      const agent = (reply: Parameters<typeof scripted>[0]) =>
        createAgent({ prompt: "Help.", model: scripted(reply), builtInTools: false });
      await desk.create({ userId: "bob", id: "s" });
      const asked = gate();
      const answer = gate();
      const slowly = async () => {
        asked.open();
        await answer.opened;
        return "Done.";
      };
      const run = desk.run("s", agent([slowly]), "Hello.");
      await asked.opened;
      for (const ifBusy of ["reject", "enqueue", "interrupt"] as const) {
        const other = desk.run("s", agent(["Mine."]), "Mine?", { actor: "ann", ifBusy });
        await expect(other).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", sessionId: "s" });
      }
      answer.open();
      expect((await run).text()).toBe("Done.");
    },
  },
  {
    name: "lists only a user's own sessions, whatever the query",
    async run(context) {
      const { manager } = context;
      const desk = manager();
      const own = await subjectOf(context, "active");
      await subjectOf(context, "foreign");
      const list = async (query: object, actor?: Actor) =>
        (await desk.list(query, actor === undefined ? {} : { actor })).items.map(({ header }) => header.userId);
      expect(new Set(await list({}, "ann"))).toEqual(new Set(["ann"]));
      expect(await list({ userId: "ann" }, "ann")).toHaveLength(2);
      expect(await list({ userId: "bob" }, "ann")).toEqual([]);
      expect(await list({ parentId: "s-foreign" }, "ann")).toEqual([]);
      expect(await list({ parentId: own.id }, "ann")).toEqual(["ann"]);
      expect(await list({}, { userId: "bob" })).toHaveLength(2);
      expect(await list({})).toHaveLength(4);
      expect(await list({ userId: "bob" }, { userId: "ann", admin: true })).toHaveLength(2);
      const first = await desk.list({ limit: 1 }, { actor: "ann" });
      const second = await desk.list({ limit: 1, cursor: first.next as string }, { actor: "ann" });
      expect([...first.items, ...second.items].map(({ header }) => header.id).sort()).toEqual(
        [own.branchId, own.id].sort(),
      );
      expect(second.next).toBeNull();
    },
  },
  {
    name: "accepts the owner, an administrator and the program itself",
    async run({ manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" }, {});
      await desk.create({ userId: "ann" }, { actor: { userId: "root", admin: true } });
      for (const actor of ["ann", { userId: "ann" }, { userId: "root", admin: true }]) {
        expect((await desk.getState("s", { actor }))?.sessionId).toBe("s");
      }
      expect((await desk.getState("s"))?.sessionId).toBe("s");
      expect(await desk.getState("s", { actor: { userId: "root", admin: false } })).toBeNull();
    },
  },
  {
    name: "refuses an empty actor, so that a lost user id grants access to nothing",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const before = await contentsOf(store);
      const actors: unknown[] = [undefined, null, "", 7, {}, { userId: "" }, { userId: "ann", admin: "no" }];
      for (const actor of actors) {
        const options = { actor: actor as Actor };
        const codes = await Promise.all(
          [
            () => desk.getState("s", options),
            () => desk.list({}, options),
            () => desk.delete("s", options),
            () => desk.create({ userId: "ann" }, options),
            () => desk.restore("c-missing", options),
            async () => desk.run("s", createAgent({ prompt: "p", model: scripted([]) }), "x", options),
          ].map(async (call) => ((await settle(call)) as { error: { code: string } }).error.code),
        );
        for (const code of codes) expect(["INVALID_OPTION", "INVALID_ID"]).toContain(code);
      }
      expect(await contentsOf(store)).toEqual(before);
    },
  },
];
