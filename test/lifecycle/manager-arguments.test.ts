import { expect, test } from "vitest";
import { createAgent, SessionManager } from "../../src/index.ts";
import { MANAGER_ARGUMENTS } from "../../src/lifecycle/manager-arguments.ts";
import { offline } from "../../src/models/offline.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

async function managed() {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" }, { actor: "ann" });
  return { manager, sessionId };
}

const say = (content: string) => ({ type: "message", message: { role: "user", content } }) as const;

test("entries written through a session opened for a user have that author, and no draft can name another", async () => {
  const { manager, sessionId } = await managed();
  const tree = await manager.open(sessionId, { actor: "ann" });
  const first = await tree.append(say("Hello."));
  const refused = { code: "INVALID_OPTION", message: expect.stringContaining('an entry by "root" is refused') };
  const by = "root";
  await expect(tree.append({ ...say("Forged."), by })).rejects.toMatchObject(refused);
  await expect(tree.appendAll([say("Fine."), { ...say("Forged."), by }])).rejects.toMatchObject(refused);
  await expect(tree.appendAll([say("Forged.")], { by })).rejects.toMatchObject(refused);
  const facts = [
    { type: "label", targetId: first.id, label: "mine", by },
    { type: "leaf", targetId: first.id, by },
    { type: "session_info", name: "Mine", by },
    { type: "queued", runId: "r", kind: "steer", content: "Go on.", by },
    { type: "compaction", summary: "Short.", firstKeptEntryId: first.id, tokensBefore: 1, by },
    { type: "approval", runId: "r", callId: "c", by },
    { type: "cancel", runId: "r", by },
    { type: "custom", customType: "note", by },
  ] as const;
  for (const fact of facts) await expect(tree.append(fact)).rejects.toMatchObject(refused);
  const derived = await manager.open(sessionId, { actor: { userId: "ann", admin: true } });
  await expect(derived.append({ ...say("Forged."), by })).rejects.toMatchObject(refused);
  // Nothing was written, and the same by the user themselves is accepted.
  await tree.append({ ...say("Again."), by: "ann" });
  await tree.append({ type: "label", targetId: first.id, label: "mine" });
  const written = [];
  for await (const entry of manager.store.read(sessionId)) written.push([entry.type, entry.by]);
  expect(written).toEqual([
    ["message", "ann"],
    ["message", "ann"],
    ["label", "ann"],
  ]);
});

test("a session that the program opens without an actor accepts entries by anyone", async () => {
  const { manager, sessionId } = await managed();
  const tree = await manager.open(sessionId);
  expect(await tree.append({ ...say("Hello."), by: "bob" })).toMatchObject({ by: "bob" });
});

test("an actor in the wrong argument is refused, and nothing is cancelled, approved or listed", async () => {
  const { manager, sessionId } = await managed();
  const { runId } = await manager.request(sessionId, { input: "Hello." }, { actor: "ann" });
  const misplaced = { runId, actor: "bob" } as object;
  await expect(manager.cancel(sessionId, misplaced)).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: 'cancel does not take "actor" here; this argument takes runId, reason.',
  });
  expect((await manager.store.head(sessionId))?.openRuns).toHaveLength(1);
  await expect(manager.approve(sessionId, "q", { actor: "bob" } as object)).rejects.toMatchObject({
    code: "INVALID_OPTION",
  });
  await expect(manager.list({ actor: "bob" } as object)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  await expect(manager.create({ userId: "ann", actor: "bob" } as never)).rejects.toMatchObject({
    code: "INVALID_OPTION",
  });
});

test("an actor is refused by methods without that option, because it would not be checked", async () => {
  const { manager } = await managed();
  const exportUser = manager.exportUser.bind(manager) as (userId: string, options: object) => unknown;
  expect(() => exportUser("ann", { actor: "bob" })).toThrow(
    'exportUser does not take "actor" here; it takes no options.',
  );
});

test("a misspelt key is refused with the key that was probably meant", async () => {
  const { manager, sessionId } = await managed();
  const agent = createAgent({ model: offline(), prompt: "" });
  const wrong = [
    [manager.getState(sessionId, { actr: "ann" } as object), "did you mean actor?"],
    [manager.list({ userID: "ann" } as object), "did you mean userId?"],
    [manager.close(sessionId, { reasons: "done" } as object), "did you mean reason?"],
    [manager.fork(sessionId, "b", { form: null } as object), "this argument takes actor"],
    [manager.merge(sessionId, sessionId, { dryrun: true } as object), "did you mean dryRun?"],
    [manager.erase({ userid: "ann" } as never), "did you mean userId?"],
    [manager.erase({ userId: "ann" }, { dryRum: true } as object), "did you mean dryRun?"],
  ] as const;
  for (const [call, meant] of wrong)
    await expect(call).rejects.toMatchObject({ code: "INVALID_OPTION", message: expect.stringContaining(meant) });
  expect(() => manager.run(sessionId, agent, "Hello.", { aks: "never" } as object)).toThrow("did you mean ask?");
});

test("every method with options refuses an unknown key before it does anything", async () => {
  const { manager, sessionId } = await managed();
  const before = (await manager.store.head(sessionId))?.version;
  for (const [name, keys] of Object.entries(MANAGER_ARGUMENTS)) {
    for (const [index, known] of keys.entries()) {
      if (known === null) continue;
      const values = keys.map((_, position) => (position === index ? { nonsense: 1 } : undefined));
      if (keys[0] === null) values[0] = sessionId as never;
      const method = manager[name as keyof SessionManager] as (...values: unknown[]) => unknown;
      const call = (async () => method.apply(manager, values))();
      const text = `${name} does not take "nonsense" here;`;
      await expect(call).rejects.toMatchObject({ code: "INVALID_OPTION", message: expect.stringContaining(text) });
    }
  }
  expect((await manager.store.head(sessionId))?.version).toBe(before);
});
