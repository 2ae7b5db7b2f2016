import { readdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundle } from "../../scripts/bundle.mjs";
import { resumeSession } from "../../src/agent/persist/resume-session.ts";
import { resumeStateOf } from "../../src/agent/persist/resume-state.ts";
import type { AssistantMessage } from "../../src/session/message.ts";
import { Session } from "../../src/session/value/session.ts";
import { Transcript, userRow } from "../../src/session/value/transcript.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { loadSession } from "../../src/tree/index.ts";
import { idsOf, openLog } from "../sample-run-log.ts";
import { makeDirectory } from "./jsonl-support.ts";
import { programPath, start } from "./program-support.ts";
import { pathOf, places, storeAt } from "./run-support.ts";

const KILLS = 4;

// No door leads to what this program tries, so it is made from the sources, below the packages that it needs.
const built = fileURLToPath(new URL(`../../.cache/run-write-${process.pid}/`, import.meta.url));
const program = `${built}run-write.js`;
beforeAll(() => bundle(built, { input: { "run-write": programPath("run-write.mjs") } }));
afterAll(() => rm(built, { recursive: true, force: true }));

test.each(places)(
  `a run in a %s that is killed again and again is resumed by another process each time`,
  async (place) => {
    const directory = await makeDirectory();
    const path = pathOf(place, directory);
    const acknowledged: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const run = start(program, [place, path, "s", kill === 0 ? "start" : "resume"]);
      await run.more();
      expect(run.child.exitCode, "the program has ended by itself").toBeNull();
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 15));
      run.child.kill("SIGKILL");
      await run.ended;
      acknowledged.push(...run.lines());

      const store = await storeAt(place, directory);
      const { user } = await resumeSession(place === "file" ? path : { store, sessionId: "s" });
      const rows = new Set(idsOf(user));
      expect(acknowledged.filter((line) => !line.startsWith("effect") && !rows.has(line))).toEqual([]);
      // A row that was not acknowledged may still be stored, at the end of what a killed process wrote.
      expect(rows.size).toBeLessThanOrEqual(
        acknowledged.filter((line) => !line.startsWith("effect")).length + kill + 1,
      );
      const last = user.transcript.at(-1);
      const open =
        last?.message.role === "assistant" ? (last.message as AssistantMessage).toolCalls?.[0]?.id : undefined;
      const effects = resumeStateOf(user.transcript)?.effects ?? new Set();
      // Each answer has one call.
      expect([...effects]).toEqual(open !== undefined && effects.size > 0 ? [0] : []);
      if (open !== undefined && run.lines().at(-1) === `effect ${open}`) expect(effects).toEqual(new Set([0]));
      await checkHeadIsFold(store, "s");
      await store.close();
    }

    const store = await storeAt(place, directory);
    const { user, agent } = await resumeSession(place === "file" ? path : { store, sessionId: "s" });
    expect([user.id, agent.transcript.toMessages()]).toEqual(["s", [{ role: "system", content: "count" }]]);
    const { log } = await openLog(place === "file" ? path : { store, sessionId: "s" }, user, {
      runId: "last",
      output: Session.of(user.transcript),
      systemPrompt: "count",
    });
    await log.append([{ type: "message", id: "end", message: { role: "assistant", content: "enough" } }]);
    await log.end({ phase: "finished" });
    expect(await store.head("s")).toMatchObject({ leafId: "end", openRuns: [], closed: place === "file" });
    if (place === "file")
      expect((await readdir(directory)).filter((name) => !name.startsWith("."))).toEqual(["run.jsonl"]);
  },
);

test.each(places)(
  "a %s that another process holds is refused until that process has ended, and nothing is written",
  async (place) => {
    const directory = await makeDirectory();
    const path = pathOf(place, directory);
    const run = start(program, [place, path, "s", "hold"]);
    await expect.poll(() => run.lines().length, { interval: 10 }).toBe(2);
    const store = await storeAt(place, directory);
    const before = await store.head("s");
    const persist = place === "file" ? path : { store, sessionId: "s" };
    const user = Session.of(Transcript.of([userRow("me too")]), { id: "s" });
    const request = { runId: "mine", output: Session.of(user.transcript), systemPrompt: null };
    await expect(openLog(persist, user, request)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await expect(resumeSession(place === "file" ? path : { store, sessionId: "s" })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    expect(await store.head("s")).toEqual(before);
    run.child.kill("SIGKILL");
    await run.ended;
    const { log } = await openLog(persist, user, request);
    await log.end({ phase: "finished" });
    expect((await store.head("s"))?.version).toBeGreaterThan(before?.version ?? 0);
  },
);

test("a run in a file that finds the disk full fails, and continues from its last row when there is room", async () => {
  const directory = await makeDirectory();
  const path = pathOf("file", directory);
  const run = start(program, ["file", path, "s", "fill"], "ulimit -f 40");
  await run.ended;
  expect(run.lines().at(-1)).toBe("failed STORE_FAILED");
  const rows = run.lines().filter((line) => !/^(?:effect|failed) /.test(line));
  expect(rows.length).toBeGreaterThan(20);
  const { user } = await resumeSession(path);
  expect(idsOf(user)).toEqual(rows);
  const { log } = await openLog(path, user, { runId: "r", output: Session.of(user.transcript), systemPrompt: null });
  await log.append([{ type: "message", id: "end", message: { role: "user", content: "x".repeat(50_000) } }]);
  await log.end({ phase: "finished" });
  expect((await loadSession(path)).transcript.rows.map(({ id }) => id)).toEqual([...rows, "end"]);
});
