import { describe, expect, test } from "vitest";
import { measureLag } from "../measure-lag.ts";
import { redisSkip } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";
import { entriesOf, holderOf, idle, openFleet, phasesOf, places, says } from "./fleet-support.ts";

describe.for(places)("with a queue on %s", (place) => {
  test("the runs of a killed worker are taken over within its lease and a second, and no effect is repeated", async (context) => {
    if (place === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
    const fleet = await openFleet(place);
    const leaseMs = 3000;
    const workers = [await fleet.startWorker({ leaseMs }), await fleet.startWorker({ leaseMs })];
    const { sessionId, runId } = await fleet.ask("rounds=3 ms=600");
    const [first, second] = await holderOf(workers, new RegExp(`^round ${runId} 2$`));
    const allowed = measureLag(() => fleet.store.ping());
    const killedMs = Date.now();
    first.child.kill("SIGKILL");
    await expect.poll(async () => (await phasesOf(fleet.store, sessionId)).length, { interval: 20 }).toBeGreaterThan(1);
    const [, taken] = (await entriesOf(fleet.store, sessionId)).filter((entry) => entry.type === "run");
    expect(Date.parse(taken?.timestamp ?? "") - killedMs).toBeLessThanOrEqual(allowed(leaseMs + 1000));
    await idle(fleet.store, sessionId);
    expect(await phasesOf(fleet.store, sessionId)).toEqual(["started", "started", "finished"]);
    // The call in progress may have run: the model is told so, and it is not run again.
    expect(await fleet.effects()).toEqual([0, 1, 2].map((round) => `${runId} ${round}`));
    expect(second.lines()).not.toContain(`round ${runId} 2`);
  });

  test("the runs of a frozen worker are taken over, and it appends nothing when it resumes", async (context) => {
    if (place === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
    const fleet = await openFleet(place);
    const workers = [await fleet.startWorker(), await fleet.startWorker()];
    const { sessionId, runId } = await fleet.ask("rounds=2 ms=400 talk=5");
    const [frozen] = await holderOf(workers, new RegExp(`^round ${runId} 0$`));
    frozen.child.kill("SIGSTOP");
    await idle(fleet.store, sessionId);
    const before = await entriesOf(fleet.store, sessionId);
    expect(before.at(-1)).toMatchObject({ type: "run", phase: "finished" });
    frozen.child.kill("SIGCONT");
    // It has finished its earlier work when it has answered another notification.
    const awake = frozen.lines().length;
    frozen.child.kill("SIGTERM");
    await says(frozen, /^closed$/, awake);
    expect(await entriesOf(fleet.store, sessionId)).toEqual(before);
    expect(await fleet.effects()).toEqual([0, 1].map((round) => `${runId} ${round}`));
  });

  test("a worker that is told to end hands over its run at the end of the round, before its lease ends", async (context) => {
    if (place === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
    const fleet = await openFleet(place);
    const options = { leaseMs: 60_000 };
    const workers = [await fleet.startWorker(options), await fleet.startWorker(options)];
    // On a busy machine the signal is delayed, and the run must not be over before it arrives.
    const { sessionId, runId } = await fleet.ask("rounds=3 ms=1500");
    const [first, second] = await holderOf(workers, new RegExp(`^round ${runId} 0$`));
    first.child.kill("SIGTERM");
    await says(first, /^closed$/);
    await first.ended;
    expect(first.child.exitCode).toBe(0);
    await says(second, new RegExp(`^round ${runId} \\d$`));
    await idle(fleet.store, sessionId);
    expect(await phasesOf(fleet.store, sessionId)).toEqual(["started", "started", "finished"]);
    expect(await fleet.effects()).toEqual([0, 1, 2].map((round) => `${runId} ${round}`));
  });

  test("a run that is requested without workers waits, and starts with the first worker", async (context) => {
    if (place === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
    const fleet = await openFleet(place);
    const asked = await Promise.all(Array.from({ length: 20 }, () => fleet.ask("rounds=1 ms=1")));
    await Promise.all([fleet.startWorker(), fleet.startWorker()]);
    for (const { sessionId } of asked) await idle(fleet.store, sessionId);
    expect((await fleet.effects()).sort()).toEqual(asked.map(({ runId }) => `${runId} 0`).sort());
  });
});
