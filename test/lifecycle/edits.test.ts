import { expect } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import type { Model } from "../../src/agent/model/model.ts";
import { resumeSession } from "../../src/agent/persist/resume-session.ts";
import { scripted } from "../../src/models/scripted.ts";
import { buildContext } from "../../src/session/context/context.ts";
import type { EntryDraft, EntryOf } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { type Message, textOf } from "../../src/session/message.ts";
import { SessionTree } from "../../src/tree/session-tree.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { calls, result, user } from "../sample-log.ts";
import { type GroupStage, onEveryStore } from "./groups-sample.ts";

const said = (messages: readonly Message[]): string[] => messages.map(({ content }) => textOf(content));

/** A session with a question, a call with a long result, and an answer, so old that its prefix is no longer cached. */
async function talkIn({ store, id }: GroupStage): Promise<SessionTree> {
  const at = (minute: number) => ({ timestamp: `2024-01-01T00:0${minute}:00.000Z` });
  const messages: Record<string, Message> = {
    question: user("old question"),
    call: calls("t"),
    result: result("t", `first\n${"line\n".repeat(3000)}last`),
    answer: { role: "assistant", content: "old answer" },
  };
  const drafts = Object.entries(messages).map(
    ([key, message], index): EntryDraft => ({ type: "message", id: key, message, ...at(index) }),
  );
  await store.append(id, drafts);
  return SessionTree.on(store, id);
}

/** A tool that does something while it runs. */
const acting = (name: string, act: () => Promise<unknown>) =>
  toolOf(name, async () => {
    await act();
    return "ok";
  });

/** How many edits are on the path after a run that shortens old results. */
async function editsOfRun({ store, id, manager }: Omit<GroupStage, "group">, model: Model): Promise<number> {
  const edits = { toolResults: { olderThan: 1, largerThan: 400 } };
  await manager.run(id, createAgent({ prompt: "", model, edits }), "Go on.");
  const tree = await SessionTree.on(store, id);
  return (await tree.getBranch()).filter(({ type }) => type === "context_edit").length;
}

onEveryStore("edits of the context", {
  async "that others append during a run are in its next request, and so is their undoing"(stage) {
    const tree = await talkIn(stage);
    const { manager, id } = stage;
    let editId = "";
    const tools = [
      acting("edit", async () => {
        editId = (await tree.omit("result")).id;
      }),
      acting("undo", () => tree.undoEdit(editId)),
    ];
    const model = scripted([calling(callOf("a", "edit")), calling(callOf("b", "undo")), "Done."]);
    const run = await manager.run(id, createAgent({ prompt: "Be brief.", model, tools }), "Go on.");
    const [first, second, third] = model.requests.map(({ messages }) => said(messages));
    expect(first).toContain("old question");
    expect(first?.join()).toContain("first\nline");
    expect(second).toEqual(["Be brief.", "old question", "old answer", "Go on.", "", "ok"]);
    expect(third?.join()).toContain("first\nline");
    const { messages } = await tree.buildContext();
    expect(said(run.transcript.toMessages())).toEqual(said(messages));
  },

  async "are read from the end of the log as from all of it, and by a run that is recovered"(stage) {
    const tree = await talkIn(stage);
    const { store, id, manager } = stage;
    await tree.replace("result", result("t", "short"));
    await tree.omit("question", { reason: "old" });
    expect(await tree.buildContext()).toEqual(buildContext(await tree.entries()));
    const holds = { guard: { holds: true }, run: "r" } as const;
    await store.append(id, [{ type: "message", id: "new", message: user("new") }], holds);
    await store.append(id, [{ type: "run", runId: "r", phase: "started", agent: "ann", before: 1 }], holds);
    await expect(tree.omit("new")).rejects.toMatchObject({ code: "RUN_OPEN" });
    const model = scripted(["Done."]);
    const resumed = await resumeSession({ store, sessionId: id });
    expect(said(resumed.user.transcript.toMessages())).toEqual(["", "short", "old answer", "new"]);
    await (await manager.recover(id, { ann: createAgent({ name: "ann", prompt: "", model }) }))?.run;
    expect(model.requests.map(({ messages }) => said(messages))).toEqual([["", "short", "old answer", "new"]]);
  },

  async "that a run makes by itself shorten old results when no cache has them, once"(stage) {
    const tree = await talkIn(stage);
    const { manager, id } = stage;
    const edits = { toolResults: { olderThan: 1, largerThan: 400 } };
    const agent = (replies: readonly string[]) => {
      const model = scripted(replies);
      return { model, agent: createAgent({ prompt: "Be brief.", model, edits }) };
    };
    const one = agent(["One."]);
    await manager.run(id, one.agent, "Go on.");
    const [sent] = one.model.requests.map(({ messages }) => said(messages)[3] ?? "");
    expect(sent).toMatch(/^first\nline\n[\s\S]*\[\d+ characters were left out here\]\n[\s\S]*line\nlast$/);
    expect(sent?.length).toBeLessThan(400);
    const all = (await tree.entries()).filter((entry) => entry.type === "context_edit");
    expect(all).toMatchObject([{ targetId: "result", reason: "an old, large tool result" }]);
    // Its last answer is recent, so its prefix may be cached.
    await tree.undoEdit(all[0]?.id as string);
    await manager.run(id, agent(["Two."]).agent, "Again.");
    expect((await tree.entries()).filter((entry) => entry.type === "context_edit")).toHaveLength(2);
  },

  async "that a run makes by itself wait as long as the model's provider keeps its cache"({ store, id, manager }) {
    const tenMinutesAgo = new Date(Date.now() - 600_000).toISOString();
    const messages = [user("q"), calls("t"), result("t", "line\n".repeat(3000)), { ...user("a"), role: "assistant" }];
    const drafts = messages.map((message): EntryDraft => {
      return { type: "message", message: message as Message, timestamp: tenMinutesAgo };
    });
    await store.append(id, drafts);
    const { leafId } = (await store.head(id)) ?? {};
    const editsWith = async (branch: string, lifetime: { readonly cacheLifetimeMs?: number }): Promise<number> => {
      const fork = `${id}-${branch}`;
      await store.fork(id, createHeader({ id: fork }), { at: leafId ?? null });
      return editsOfRun({ store, id: fork, manager }, { ...scripted(["Done."]), ...lifetime });
    };
    expect(await editsWith("hour", { cacheLifetimeMs: 3_600_000 })).toBe(0);
    expect(await editsWith("default", {})).toBe(1);
  },

  async "that a run makes by itself wait while a request on another branch keeps the common prefix cached"(stage) {
    const { store, id } = stage;
    await talkIn(stage);
    const { leafId } = (await store.head(id)) ?? {};
    const ago = (minutes: number) => ({ timestamp: new Date(Date.now() - minutes * 60_000).toISOString() });
    const answerOnBranch = async (minutes: number, model: string): Promise<void> => {
      await store.append(id, [
        { type: "message", message: user("Aside."), ...ago(minutes) },
        { type: "message", message: { role: "assistant", content: "Yes.", model }, ...ago(minutes) },
        { type: "leaf", targetId: leafId ?? null, ...ago(minutes) },
      ]);
    };
    await answerOnBranch(4, "scripted-2026-01-01");
    await answerOnBranch(0, "another-model");
    // A merge brings messages with their times, which may be long ago.
    const merged = { ...user("Elsewhere."), metadata: { mergedFrom: { sessionId: "gone" } } };
    await store.append(id, [
      { type: "message", message: merged, ...ago(60) },
      { type: "leaf", targetId: leafId ?? null, ...ago(60) },
    ]);
    expect(await editsOfRun(stage, scripted(["Done."]))).toBe(0);
  },

  async "that a run makes by itself know the model by its run if a gateway gives answers another name"(stage) {
    await talkIn(stage);
    const named = scripted([{ role: "assistant", content: "One.", model: "gateway/another-name" }]);
    await stage.manager.run(stage.id, createAgent({ prompt: "", model: named }), "Go on.");
    expect(await editsOfRun(stage, scripted(["Two."]))).toBe(0);
    expect(await editsOfRun(stage, { ...scripted(["Three."]), id: "other" })).toBe(1);
  },

  async "that a person has undone are not made again"(stage) {
    const tree = await talkIn(stage);
    const edit = await tree.replace("result", result("t", "short"));
    await tree.undoEdit(edit.id);
    const edits = { toolResults: { olderThan: 1, largerThan: 400 } };
    await stage.manager.run(stage.id, createAgent({ prompt: "", model: scripted(["One."]), edits }), "Go on.");
    expect((await tree.entries()).filter((entry) => entry.type === "context_edit")).toHaveLength(2);
  },

  async "are seen by the agents of a group in their next request, and only by those who see the target"(stage) {
    const { manager, id, store } = stage;
    const tree = await SessionTree.on(store, id);
    const group = stage.group();
    let secret: EntryOf<"message"> | undefined;
    const tools = [
      acting("edit", async () => {
        const entries = await tree.entries();
        secret = entries.find(
          (entry) => entry.type === "message" && textOf(entry.message.content) === "for b",
        ) as never;
        await tree.replace((secret as EntryOf<"message">).id, {
          role: "assistant",
          content: "for b, shortened",
          metadata: { visibleTo: ["a", "b"] },
        });
        const question = entries.find((entry) => entry.type === "message") as EntryOf<"message">;
        await expect(tree.omit(question.id)).resolves.toBeDefined();
      }),
    ];
    const a = scripted(["hello from a", "I see.", "Nothing."]);
    const b = scripted([calling(callOf("x", "edit")), "after the edit"]);
    await tree.appendMessage({ role: "user", content: "an old note" });
    await tree.appendMessage({
      role: "assistant",
      content: "for b",
      agent: "b",
      metadata: { visibleTo: ["b"] },
    });
    group.addAgent(createAgent({ name: "a", prompt: "", model: a }));
    group.addAgent(createAgent({ name: "b", prompt: "", model: b, tools }));
    await group.run(id, "Speak.", { maxRounds: 1 });
    const ofB = b.requests.map(({ messages }) => said(messages));
    expect(ofB[0]).toContain("for b");
    expect(ofB[1]).toContain("for b, shortened");
    expect(ofB[1]).not.toContain("an old note");
    expect(JSON.stringify(a.requests)).not.toContain("for b");
    const later = scripted(["Seen."]);
    const other = stage.group();
    other.addAgent(createAgent({ name: "a", prompt: "", model: later }));
    await other.run(id, "And now?", { maxRounds: 1 });
    expect(JSON.stringify(later.requests)).not.toContain("for b");
    expect(manager).toBeDefined();
  },
});
