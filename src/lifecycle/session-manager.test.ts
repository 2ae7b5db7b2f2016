import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { checkHeadIsFold } from "../testing/check-head-is-fold.ts";
import type { SessionStatus } from "../session/log/entry.ts";
import type { SessionError } from "../session/errors.ts";
import { openJsonlStore } from "../stores/jsonl/index.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionManager } from "./session-manager.ts";

const TTL = 100;
const TURNS_MAX = 4;

/** The expected state of a session, as the simplest model. */
interface Model {
  status: SessionStatus;
  turns: number;
  idleSince: number;
  /** The turns at each checkpoint. */
  readonly checkpoints: { readonly id: string; readonly turns: number }[];
}

type Step =
  | { readonly type: "addTurn" | "suspend" | "resume" | "open" | "close" | "checkpoint" | "sweep" | "read" }
  | { readonly type: "wait"; readonly seconds: number }
  | { readonly type: "restore"; readonly index: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ type: "addTurn" }) },
  {
    weight: 6,
    arbitrary: fc
      .constantFrom<Step["type"]>("suspend", "resume", "open", "checkpoint", "sweep", "read")
      .map((type) => ({ type }) as Step),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ type: "close" }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 80 }).map((seconds): Step => ({ type: "wait", seconds })) },
  { weight: 2, arbitrary: fc.nat(5).map((index): Step => ({ type: "restore", index })) },
);

const own: Partial<Record<SessionStatus, string>> = {
  suspended: "SESSION_SUSPENDED",
  closed: "SESSION_CLOSED",
  expired: "SESSION_EXPIRED",
};

/** The expected result of a step; updates the model. */
function predict(model: Model, { type, ...rest }: Step, now: number): string {
  const due = (model.status === "active" || model.status === "suspended") && now - model.idleSince > TTL;
  const writes =
    !["checkpoint", "read", "wait"].includes(type) && !(type === "restore" && model.checkpoints.length === 0);
  if (due && writes) model.status = "expired";
  const { status } = model;
  const touch = (next: SessionStatus = status): "ok" => {
    model.status = next;
    model.idleSince = now;
    return "ok";
  };
  switch (type) {
    case "addTurn":
      if (status !== "active") return own[status] as string;
      if (model.turns === TURNS_MAX) return "CAPACITY";
      model.turns += 1;
      return touch();
    case "restore": {
      const checkpoint = model.checkpoints[(rest as { index: number }).index % model.checkpoints.length];
      if (checkpoint === undefined) return "CHECKPOINT_NOT_FOUND";
      if (status !== "active") return own[status] as string;
      model.turns = checkpoint.turns;
      return touch();
    }
    case "suspend":
      return status === "active" ? touch("suspended") : "TRANSITION";
    case "resume":
    case "open":
      if (status === "suspended") return touch("active");
      if (status === "active") return type === "open" ? "ok" : "TRANSITION";
      return own[status] as string;
    case "close":
      return status === "active" || status === "suspended" ? touch("closed") : "TRANSITION";
    default:
      return "ok";
  }
}

test("matches the model after any sequence of operations", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      let now = Date.UTC(2030, 0, 1);
      const clock = (): Date => new Date(now);
      const store = openMemoryStore({ clock });
      const ends: string[] = [];
      const manager = new SessionManager({
        store,
        clock,
        config: { sessionTtl: TTL, maxTurnsPerSession: TURNS_MAX, autoCheckpointInterval: null },
        consolidator: { consolidate: ({ sessionId }) => ends.push(sessionId) },
      });
      await manager.create({ userId: "ann", id: "s" });
      const model: Model = { status: "active", turns: 0, idleSince: now / 1000, checkpoints: [] };
      for (const each of steps) {
        if (each.type === "wait") now += each.seconds * 1000;
        const expected = predict(model, each, now / 1000);
        expect({ each, outcome: await perform(manager, model, each) }).toEqual({ each, outcome: expected });
        const due = ["active", "suspended"].includes(model.status) && now / 1000 - model.idleSince > TTL;
        const status = due ? "expired" : model.status;
        expect(await manager.getState("s")).toMatchObject({ status, turnCount: model.turns });
        expect(await store.head("s")).toMatchObject({ status: model.status });
      }
      await checkHeadIsFold(store, "s");
      await manager.settled();
      expect(ends).toEqual(model.status === "closed" || model.status === "expired" ? ["s"] : []);
    }),
    { numRuns: 150 },
  );
});

async function perform(manager: SessionManager, model: Model, each: Step): Promise<string> {
  try {
    switch (each.type) {
      case "addTurn":
        await manager.addTurn("s", { role: "user", content: "x" });
        break;
      case "checkpoint": {
        const { id } = await manager.checkpoint("s");
        model.checkpoints.push({ id, turns: model.turns });
        break;
      }
      case "restore":
        await manager.restore(model.checkpoints[each.index % model.checkpoints.length]?.id ?? "none");
        break;
      case "sweep":
        await manager.sweep();
        break;
      case "suspend":
      case "resume":
      case "open":
      case "close":
        await manager[each.type]("s");
        break;
      default:
        await manager.list();
    }
    return "ok";
  } catch (error) {
    return (error as SessionError).code;
  }
}

test("hides an unreadable session from users, because it may be another's, and reports it to the operator", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-manager-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const maker = new SessionManager({ store: await openJsonlStore({ directory }) });
  await maker.create({ userId: "ann", id: "own" });
  await maker.create({ userId: "bob", id: "broken" });
  await maker.addTurn("broken", { role: "user", content: "one" });
  await maker.store.close();
  const name = (await readdir(directory)).find((file) => file.endsWith("_broken.jsonl")) as string;
  const text = await readFile(join(directory, name), "utf8");
  await writeFile(join(directory, name), text.replace('{"type":"message"', '["type":"message"'));
  await rm(join(directory, ".index"), { recursive: true });
  await using store = await openJsonlStore({ directory });
  const failures: unknown[] = [];
  const manager = new SessionManager({ store, onError: (error, context) => failures.push([error, context]) });
  const damaged = expect.objectContaining({ code: "DAMAGED" });
  await expect(manager.getState("broken")).rejects.toEqual(damaged);
  await expect(manager.getState("broken", { actor: { userId: "root", admin: true } })).rejects.toEqual(damaged);
  expect(failures).toEqual([]);
  expect(await manager.getState("broken", { actor: "ann" })).toBeNull();
  const missing = { code: "SESSION_NOT_FOUND", sessionId: "broken" };
  await expect(manager.suspend("broken", { actor: "ann" })).rejects.toMatchObject(missing);
  await expect(manager.merge("own", "broken", { actor: "ann" })).rejects.toMatchObject(missing);
  const context = { during: "access", sessionId: "broken" };
  expect(failures).toEqual(Array(3).fill([damaged, context]));
  expect((await manager.list()).damaged).toHaveLength(1);
  expect(await manager.list({}, { actor: "ann" })).toMatchObject({ items: [{}], damaged: [] });
});

test("adds turns and reads a state without turns at a cost that does not grow with the session", async () => {
  const counts: Record<string, number> = {};
  const inner = openMemoryStore();
  const store = new Proxy(inner, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        counts[String(key)] = (counts[String(key)] ?? 0) + 1;
        return value.apply(target, args);
      };
    },
  });
  const manager = new SessionManager({ store, config: { autoCheckpointInterval: 50, maxTurnsPerSession: 500 } });
  await manager.create({ userId: "ann", id: "s" });
  for (let i = 0; i < 120; i++) await manager.addTurn("s", { role: "user", content: "x" });
  // Each turn reads the head and appends; the two checkpoints get their position from the append itself.
  expect(counts).toMatchObject({ head: 120, append: 120, saveCheckpoint: 2 });
  expect(counts.read).toBeUndefined();
  expect(await manager.getState("s", { turns: false })).toMatchObject({ turnCount: 120, turns: [] });
  expect(counts.read).toBeUndefined();
});
