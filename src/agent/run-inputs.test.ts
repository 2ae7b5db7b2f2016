import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gate } from "../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  inShort,
  modelOf,
  nextEvent,
  saying,
  shortly,
  someAgent,
  streamOf,
  toolOf,
} from "../../test/sample-run.ts";
import { actingBefore, entriesOf } from "../../test/sample-run-log.ts";
import { scripted } from "../models/scripted.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { QUEUED_KEY } from "../session/log/run-fold.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";

const looking = (id = "a") => calling(callOf(id, "look"));

describe("input of users during a run", () => {
  test("is delivered as steer before the model's next turn, and as followUp when it would stop", async () => {
    const model = scripted([looking(), "Would stop.", "Stops."]);
    const look = toolOf("look", async () => {
      await run.followUp("And then?");
      await run.steer("Faster.");
      await run.steer("Even faster.");
    });
    const run: SessionRun = runSessionLoop(asking(), someAgent(), { model, tools: [look] });
    const session = await run;
    expect(shortly(session.transcript)).toEqual([
      "user: Do it.",
      "assistant: [look]",
      'tool: {"ok":true}',
      "user: Faster.",
      "user: Even faster.",
      "assistant: Would stop.",
      "user: And then?",
      "assistant: Stops.",
    ]);
    expect(model.requests[1]?.messages.slice(-2).map(inShort)).toEqual(["user: Faster.", "user: Even faster."]);
  });

  test("before the first turn is part of the first request", async () => {
    const model = scripted(["Done."]);
    const run = runSessionLoop(asking(), someAgent(), { model });
    const said = run.steer([{ type: "text", text: "In parts." }]);
    await run;
    await said;
    expect(model.requests[0]?.messages.map(inShort)).toEqual(["system: Be brief.", "user: Do it.", "user: In parts."]);
  });

  test("keeps the id of its entry, and is a copy of the given content", async () => {
    const part = { type: "text" as const, text: "before" };
    const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    const said = run.steer([part]);
    part.text = "after";
    await said;
    const message = (await run).transcript.at(1)?.message;
    expect(message).toMatchObject({ role: "user", content: [{ type: "text", text: "before" }] });
    expect(message?.metadata?.[QUEUED_KEY]).toEqual(expect.any(String));
  });

  test("is refused if it is not valid content, and the run continues", async () => {
    const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    await expect(run.steer(7 as unknown as string)).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    await expect(run.followUp([{ type: "video" } as never])).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    expect((await run).text()).toBe("Done.");
  });

  test("after the end is refused", async () => {
    const finished = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    await finished;
    const failed = runSessionLoop(asking(), someAgent(), { model: scripted([]) });
    await expect(failed.synchronize()).rejects.toThrow();
    for (const run of [finished, failed]) {
      await expect(run.steer("Too late.")).rejects.toMatchObject({ code: "RUN_ENDED" });
      await expect(run.followUp("Too late.")).rejects.toMatchObject({ code: "RUN_ENDED" });
    }
  });

  test("while the last answer is being written is answered in another round", async () => {
    const { pass, open } = gate();
    const model = scripted([
      async function* () {
        yield { type: "text-delta", text: "Almost" };
        await pass;
        yield { type: "finish", stopReason: "stop" };
      },
      "Now I am done.",
    ]);
    const run = runSessionLoop(asking(), someAgent(), { model });
    await nextEvent(run, "text-delta");
    await run.steer("Wait!");
    open();
    expect(shortly((await run).transcript).slice(-3)).toEqual([
      "assistant: Almost",
      "user: Wait!",
      "assistant: Now I am done.",
    ]);
  });

  test("is kept in the transcript for the next run if the run uses up its rounds first", async () => {
    const look = toolOf("look", async () => {
      await run.steer("Faster.");
      await run.followUp("And then?");
    });
    const run: SessionRun = runSessionLoop(asking(), someAgent(), {
      model: scripted([looking()]),
      tools: [look],
      maxToolRounds: 1,
    });
    const session = await run;
    expect(shortly(session.transcript).slice(-2)).toEqual(["user: Faster.", "user: And then?"]);
    expect(session.lineage.extras).toEqual([["loop.truncated", true]]);
  });

  test("is refused if the run fails before it is delivered", async () => {
    const { pass, open } = gate();
    const run = runSessionLoop(asking(), someAgent(), {
      model: modelOf(async () => {
        await pass;
        throw new Error("Gone.");
      }),
    });
    await nextEvent(run, "round-started");
    open();
    await expect(run.synchronize()).rejects.toThrow("Gone.");
    await expect(run.steer("Too late.")).rejects.toMatchObject({ code: "RUN_ENDED" });
  });
});

test.each([
  ["not kept", () => ({})],
  ["kept", () => ({ persist: openMemoryStore() })],
])(
  "whenever it is said in a run that is %s, input is either in the transcript, once, or refused",
  async (_name, kept) => {
    const waits = fc.array(fc.tuple(fc.constantFrom("steer", "followUp"), fc.nat({ max: 150 })), {
      minLength: 1,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(waits, fc.nat({ max: 3 }), async (inputs, rounds) => {
        const model = modelOf(async ({ messages }) => {
          const calls = messages.filter(({ role }) => role === "tool").length;
          return calls < rounds ? looking(`${calls}`) : saying("Done.");
        });
        const run = runSessionLoop(asking(), someAgent(), { model, tools: [toolOf("look")], ...kept() });
        const said = await Promise.all(
          inputs.map(async ([kind, ticks], index) => {
            // The same number of microtasks lands at the same place in a run, so that all places are tried.
            for (let tick = 0; tick < ticks; tick++) await null;
            return run[kind as "steer" | "followUp"](`input ${index}`).then(
              () => true,
              (error: { code: string }) => {
                expect(error.code).toBe("RUN_ENDED");
                return false;
              },
            );
          }),
        );
        const texts = shortly((await run).transcript);
        for (const [index, taken] of said.entries()) {
          expect(texts.filter((text) => text === `user: input ${index}`)).toHaveLength(taken ? 1 : 0);
        }
      }),
      { numRuns: 200 },
    );
  },
);

test.for(["steer", "followUp"] as const)(
  "a %s that another process records after the last answer and before the end is answered by the run",
  async (kind) => {
    const store = openMemoryStore();
    let said = 0;
    const isEnd = (draft: EntryDraft): boolean => draft.type === "run" && draft.phase === "finished";
    const late = actingBefore(store, isEnd, async (sessionId) => {
      said += 1;
      const { runId } = run;
      if (said === 1) await store.append(sessionId, [{ type: "queued", runId, kind, content: "One more thing." }]);
      if (said === 2) await store.append(sessionId, [{ type: "session_info", name: "beside" }]);
    });
    const model = scripted(["Done.", "Done with that, too."]);
    const run: SessionRun = runSessionLoop(asking(), someAgent(), { model, persist: late });
    const session = await run;
    expect(shortly(session.transcript)).toEqual([
      "user: Do it.",
      "assistant: Done.",
      "user: One more thing.",
      "assistant: Done with that, too.",
    ]);
    expect([run.status, said, (await store.head(run.id))?.openRuns]).toEqual(["finished", 3, []]);
  },
);

test("input recorded for a run that was cut short, before its end, is kept for the next run", async () => {
  const store = openMemoryStore();
  let said = false;
  const isEnd = (draft: EntryDraft): boolean => draft.type === "run" && draft.phase === "finished";
  const late = actingBefore(store, isEnd, async (sessionId) => {
    const { runId } = run;
    if (!said) await store.append(sessionId, [{ type: "queued", runId, kind: "steer", content: "Why?" }]);
    said = true;
  });
  const model = scripted([looking()]);
  const tools = [toolOf("look")];
  const run: SessionRun = runSessionLoop(asking(), someAgent(), { model, tools, maxToolRounds: 1, persist: late });
  expect(shortly((await run).transcript).at(-1)).toBe("user: Why?");
  expect((await entriesOf(store, run.id)).at(-1)).toMatchObject({ phase: "finished", truncated: true });
});

test("a run whose model streams nothing but a finish still receives input", async () => {
  const model = streamOf(async function* () {
    yield { type: "finish", stopReason: "stop", reply: { role: "assistant", content: "Hm.", stopReason: "stop" } };
  });
  const run = runSessionLoop(asking(), someAgent(), { model });
  const said = run.followUp("And?");
  const session = await run;
  await said;
  expect(shortly(session.transcript)).toEqual(["user: Do it.", "assistant: Hm.", "user: And?", "assistant: Hm."]);
});
