import { describe, expect, test } from "vitest";
import { type Entrant, type IfBusy, RunLine } from "./run-line.ts";

/** A run that wants a session. */
function entrant(runId: string, ifBusy: IfBusy = "enqueue", init: Partial<Entrant> = {}): Entrant {
  return { runId, ifBusy, waitMs: 60_000, signal: new AbortController().signal, interrupt: () => {}, ...init };
}

describe("a line of runs", () => {
  test("lets them have the session one by one, those that interrupt first", async () => {
    const line = new RunLine();
    const order: string[] = [];
    const interrupted: string[] = [];
    const runs = [
      entrant("a", "reject", { interrupt: () => interrupted.push("a") }),
      entrant("b"),
      entrant("c"),
      entrant("d", "interrupt"),
    ];
    const entered = runs.map((run) => line.enter("s", run).then(() => order.push(run.runId)));
    await expect.poll(() => interrupted).toEqual(["a"]);
    expect(order).toEqual(["a"]);
    for (const [left, next] of ["a", "d", "b", "c"].map((id, index, ids) => [id, ids[index + 1]])) {
      line.leave("s", runs.find(({ runId }) => runId === left) as Entrant);
      await entered[runs.findIndex(({ runId }) => runId === next)];
    }
    expect(order).toEqual(["a", "d", "b", "c"]);
    await line.enter("s", entrant("e", "reject"));
  });

  test("refuses whoever does not wait, or has waited long enough, and names the run that has the session", async () => {
    const line = new RunLine();
    const holder = entrant("holder");
    await line.enter("s", holder);
    const busy = { code: "SESSION_BUSY", sessionId: "s", holder: "run holder" };
    await expect(line.enter("s", entrant("b", "reject"))).rejects.toMatchObject(busy);
    await expect(line.enter("s", entrant("c", "enqueue", { waitMs: 5 }))).rejects.toMatchObject(busy);
    await line.enter("other", entrant("d", "reject"));
    line.leave("s", holder);
    await line.enter("s", entrant("e", "reject"));
  });

  test("forgets whoever stops waiting, and lets the next one in instead", async () => {
    const line = new RunLine();
    const [holder, controller] = [entrant("holder"), new AbortController()];
    await line.enter("s", holder);
    const gone = line.enter("s", entrant("gone", "enqueue", { signal: controller.signal }));
    const next = line.enter("s", entrant("next"));
    controller.abort(new Error("changed my mind"));
    await expect(gone).rejects.toThrow("changed my mind");
    await expect(line.enter("s", entrant("late", "enqueue", { signal: controller.signal }))).rejects.toThrow("my mind");
    line.leave("s", holder);
    await next;
  });

  test("is not moved by a run that does not have the session", async () => {
    const line = new RunLine();
    const holder = entrant("holder");
    await line.enter("s", holder);
    line.leave("s", entrant("holder"));
    await expect(line.enter("s", entrant("b", "reject"))).rejects.toMatchObject({ code: "SESSION_BUSY" });
  });

  test("lets them in as they asked, in whatever order they are checked, and nobody who does not pass", async () => {
    const line = new RunLine();
    const order: string[] = [];
    const checks = new Map<string, (error?: Error) => void>();
    const check = (id: string) => () =>
      new Promise<void>((resolve, reject) => {
        checks.set(id, (error) => (error === undefined ? resolve() : reject(error)));
      });
    const runs = ["a", "b", "c"].map((id) => entrant(id));
    const entered = runs.map((run) => line.enter("s", run, check(run.runId)).then(() => order.push(run.runId)));
    checks.get("c")?.();
    checks.get("b")?.(new Error("not yours"));
    await expect(Promise.race([entered[1], entered[2]])).rejects.toThrow("not yours");
    checks.get("a")?.();
    await entered[0];
    expect(order).toEqual(["a"]);
    line.leave("s", runs[0] as Entrant);
    await entered[2];
    expect(order).toEqual(["a", "c"]);
  });

  test("lets them in as they asked when the first is the last to be checked", async () => {
    for (let tries = 0; tries < 20; tries++) {
      const line = new RunLine();
      const order: string[] = [];
      const checks: (() => void)[] = [];
      const runs = ["a", "b", "c"].map((id) => entrant(id));
      const entered = runs.map((run) =>
        line.enter("s", run, () => new Promise((resolve) => checks.push(resolve))).then(() => order.push(run.runId)),
      );
      for (const pass of checks.toReversed()) pass();
      for (const [index, run] of runs.entries()) {
        await entered[index];
        line.leave("s", run);
      }
      expect(order).toEqual(["a", "b", "c"]);
    }
  });
});
