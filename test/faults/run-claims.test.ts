import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeDirectory } from "./jsonl-support.ts";
import { type Running, start } from "./program-support.ts";
import { pathOf, places, storeAt } from "./run-support.ts";

const PROGRAM = "run-claim.mjs";
const ROUNDS = 2;

/** The last line of a program after it has printed the given number of lines. */
async function lineOf({ lines, more, child }: Running, count: number): Promise<string> {
  while (lines().length < count) {
    if (child.exitCode !== null && lines().length < count) throw new Error(`It ended and said only ${lines()}.`);
    await more();
  }
  return lines()[count - 1] as string;
}

test.each(places)(
  "of three processes that resume the killed run of a %s concurrently, one runs the call that had not started",
  async (place) => {
    for (let round = 0; round < ROUNDS; round++) {
      const directory = await makeDirectory();
      const [path, effects] = [pathOf(place, directory), join(await makeDirectory(), "effects")];
      const killed = start(PROGRAM, [place, path, "start", effects]);
      await lineOf(killed, 2);
      const [sessionId = ""] = killed.lines();
      killed.child.kill("SIGKILL");
      await killed.ended;

      const claims = [0, 1, 2].map(() => start(PROGRAM, [place, path, sessionId, effects]));
      for (const said of ["ready", "found"]) {
        const at = said === "ready" ? 1 : 2;
        expect(await Promise.all(claims.map((claim) => lineOf(claim, at)))).toEqual(claims.map(() => said));
        for (const { child } of claims) child.stdin.write("go\n");
      }
      const outcomes = await Promise.all(claims.map((claim) => lineOf(claim, 3)));
      expect(outcomes.filter((outcome) => outcome === "ran")).toEqual(["ran"]);
      expect(outcomes.filter((outcome) => !["ran", "SESSION_BUSY", "CONFLICT"].includes(outcome))).toEqual([]);
      expect((await readFile(effects, "utf8")).trim().split("\n")).toHaveLength(1);
      const store = await storeAt(place, directory);
      expect([await store.count(), (await store.head(sessionId))?.openRuns]).toEqual([1, []]);
      await store.close();
    }
  },
);

test.each(places)(
  "a %s whose resumer is killed too, again and again, has its open call run at most once",
  async (place) => {
    const directory = await makeDirectory();
    const [path, effects] = [pathOf(place, directory), join(await makeDirectory(), "effects")];
    const killed = start(PROGRAM, [place, path, "start", effects]);
    await lineOf(killed, 2);
    const [sessionId = ""] = killed.lines();
    killed.child.kill("SIGKILL");
    await killed.ended;
    // A run that is claimed more often without progress fails.
    for (let kill = 0; kill < 2; kill++) {
      const claims = [0, 1].map(() => start(PROGRAM, [place, path, sessionId, effects]));
      await Promise.all(claims.map((claim) => lineOf(claim, 1)));
      for (const { child } of claims) child.stdin.write("go\n");
      await Promise.all(claims.map((claim) => lineOf(claim, 2)));
      for (const { child } of claims) child.stdin.write("go\n");
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 25));
      for (const { child } of claims) child.kill("SIGKILL");
      await Promise.all(claims.map(({ ended }) => ended));
    }
    const last = start(PROGRAM, [place, path, sessionId, effects]);
    await lineOf(last, 1);
    last.child.stdin.write("go\ngo\n");
    expect(await lineOf(last, 3)).toBe("ran");
    const ran = await readFile(effects, "utf8").catch(() => "");
    expect(ran.split("\n").filter((line) => line !== "").length).toBeLessThanOrEqual(1);
    const store = await storeAt(place, directory);
    expect([await store.count(), (await store.head(sessionId))?.openRuns]).toEqual([1, []]);
  },
);
