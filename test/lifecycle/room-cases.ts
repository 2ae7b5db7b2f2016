import { expect } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import { type ScriptedReply, scripted } from "../../src/models/scripted.ts";
import { resumeSession } from "../../src/agent/persist/resume-session.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { textOf, type ToolMessage } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { calling, callOf, saying, toolOf } from "../sample-run.ts";
import { entriesOf, gate, type LifecycleCase } from "./lifecycle-case.ts";

/** An agent whose tools count how often they ran. */
function acting(replies: readonly ScriptedReply[], execute: () => unknown = () => "done") {
  let ran = 0;
  const act = toolOf("act", () => {
    ran += 1;
    return execute();
  });
  const model = scripted(replies);
  const agent: Agent = createAgent({ prompt: "Help.", model, tools: [act], builtInTools: false });
  return { agent, asked: () => model.requests.length, ran: () => ran };
}

const calls = (...ids: readonly string[]) => calling(...ids.map((id) => callOf(id, "act")));

/** The results of the calls in a log: the kind of an error, else the text of the tool. */
async function resultsIn(store: SessionStore, id: string): Promise<string[]> {
  const isResult = (entry: Entry): entry is Extract<Entry, { type: "message" }> & { message: ToolMessage } =>
    entry.type === "message" && entry.message.role === "tool";
  return (await entriesOf(store, id)).filter(isResult).map(({ message: { content, isError } }) => {
    const said = textOf(content);
    return isError === true ? (JSON.parse(said) as { error_kind: string }).error_kind : said;
  });
}

async function endOf(store: SessionStore, id: string): Promise<unknown> {
  return (await entriesOf(store, id)).findLast(({ type }) => type === "run");
}

/** How a run respects the limit of its session's turns. */
export const roomCases: readonly LifecycleCase[] = [
  {
    name: "refuses a run without room for its input and an answer, asks no model and leaves nothing behind",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 1 } });
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked } = acting(["Hello."]);
      await expect(desk.run("s", agent, "Hi.")).rejects.toMatchObject({ code: "CAPACITY", limit: 1 });
      expect([asked(), (await entriesOf(store, "s")).length]).toEqual([0, 0]);
    },
  },
  {
    name: "starts no call without room for its result: the answer is kept, and the run ends cut short",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 3 } });
      await desk.create({ userId: "ann", id: "s" });
      const { agent, ran, asked } = acting([calls("a", "b"), "Done."]);
      const output = await desk.run("s", agent, "Do both.");
      expect([ran(), asked()]).toEqual([0, 1]);
      expect(output.lineage.extras).toContainEqual(["loop.truncated", true]);
      expect(await resultsIn(store, "s")).toEqual(["no_room", "no_room"]);
      expect(await endOf(store, "s")).toMatchObject({ phase: "finished", truncated: true });
    },
  },
  {
    name: "runs the calls for which there is room, and does not call the model without room for its answer",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 4 } });
      await desk.create({ userId: "ann", id: "s" });
      const { agent, ran, asked } = acting([calls("a", "b"), "Done."]);
      const output = await desk.run("s", agent, "Do both.");
      expect([ran(), asked()]).toEqual([2, 1]);
      expect(output.lineage.extras).toContainEqual(["loop.truncated", true]);
      expect(await resultsIn(store, "s")).toEqual(["done", "done"]);
    },
  },
  {
    name: "keeps the result of every started call, though others filled the session meanwhile",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 4 } });
      await desk.create({ userId: "ann", id: "s" });
      const started = gate();
      const filled = gate();
      const slow = async (): Promise<string> => {
        started.open();
        await filled.opened;
        return "done";
      };
      const { agent, ran } = acting([calls("a", "b"), "Done."], slow);
      const run = desk.run("s", agent, "Do both.");
      await started.opened;
      for (const content of ["One more.", "And another."]) await desk.addTurn("s", { role: "user", content });
      await expect(desk.addTurn("s", { role: "user", content: "Too many." })).rejects.toMatchObject({
        code: "CAPACITY",
      });
      filled.open();
      expect((await run).lineage.extras).toContainEqual(["loop.truncated", true]);
      expect(ran()).toBe(2);
      expect(await resultsIn(store, "s")).toEqual(["done", "done"]);
      expect(await endOf(store, "s")).toMatchObject({ phase: "finished", truncated: true });
    },
  },
  {
    name: "keeps an answer although others filled the session while it was written, and messages to the run",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 2 } });
      await desk.create({ userId: "ann", id: "s" });
      const asked = gate();
      const filled = gate();
      const { agent, ran } = acting([
        async () => {
          asked.open();
          await filled.opened;
          return saying("I shall.", { toolCalls: [callOf("a", "act")], stopReason: "tool_calls" });
        },
      ]);
      const run = desk.run("s", agent, "Do it.");
      await asked.opened;
      await desk.addTurn("s", { role: "user", content: "One more." });
      await run.steer("Hurry.");
      filled.open();
      const said = (await run).transcript.toMessages().map(({ role, content }) => (role === "user" ? content : role));
      expect(said).toEqual(["Do it.", "One more.", "assistant", "tool", "Hurry."]);
      expect([ran(), await resultsIn(store, "s")]).toEqual([0, ["no_room"]]);
      await expect(desk.run("s", agent, "More.")).rejects.toMatchObject({ code: "CAPACITY" });
    },
  },
  {
    name: "starts no open call of an earlier run without room for its result",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 2 } });
      await desk.create({ userId: "ann", id: "s" });
      await desk.store.append("s", [
        { type: "message", message: { role: "user", content: "Do it." } },
        { type: "run", runId: "r", phase: "started" },
        { type: "message", message: calls("a", "b") },
        { type: "effect", runId: "r", callId: "b" },
      ]);
      const { agent, ran, asked } = acting(["Done."]);
      const { user } = await resumeSession({ store, sessionId: "s" });
      const going: Agent = { ...agent, run: (_input, options) => agent.run(user, options) };
      await desk.run("s", going, "");
      expect([ran(), asked(), await resultsIn(store, "s")]).toEqual([0, 0, ["no_room", "interrupted"]]);
    },
  },
];
