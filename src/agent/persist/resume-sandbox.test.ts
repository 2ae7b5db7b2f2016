import { describe, expect, test } from "vitest";
import { CountedBackend } from "../../../test/counted-sandbox.ts";
import { asking, calling, callOf, inShort, saying, someAgent, toolOf } from "../../../test/sample-run.ts";
import { scripted } from "../../models/scripted.ts";
import { registerSandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import type { Entry } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { Session } from "../../session/value/session.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { resumeSession } from "./resume-session.ts";
import { runSessionLoop } from "../run-session-loop.ts";

const acting = toolOf("act", async (_args, context) => {
  const sandbox = await context.requireSandbox();
  await sandbox.writeFile("done.txt", "yes");
  return "done";
});

function aimed(session: Session): { session: Session; backend: CountedBackend } {
  const backend = new CountedBackend();
  registerSandboxBackend(backend.name, () => backend);
  return { session: session.to(backend.name), backend };
}

describe("a sandbox that a stored run opened during a tool call", () => {
  test("is recorded once before a tool acts in it, and again at the end", async () => {
    const store = openMemoryStore();
    const { session, backend } = aimed(asking());
    const model = scripted([
      calling(callOf("1", "act"), callOf("2", "act")),
      calling(callOf("3", "act")),
      saying("ok"),
    ]);
    const answer = await runSessionLoop(session, someAgent(), { model, tools: [acting], persist: store });
    const entries: Entry[] = [];
    for await (const entry of store.read(answer.id)) entries.push(entry);
    const places = entries.flatMap((entry) =>
      entry.type === "run" && entry.sandbox !== undefined ? [[entry.phase, entry.sandbox.handleId]] : [],
    );
    const [id] = backend.live.keys();
    expect(places).toEqual([
      ["started", id],
      ["finished", id],
    ]);
    await answer.closeSandbox();
  });

  test("is found again by a resume, after a regular end and after a crash", async () => {
    const store = openMemoryStore();
    const { session, backend } = aimed(asking());
    const model = scripted([calling(callOf("1", "act")), saying("ok"), calling(callOf("2", "act"))]);
    const options = { model, tools: [acting], persist: store };
    const finished = await runSessionLoop(session, someAgent(), options);
    const [id] = backend.live.keys();
    const first = await resumeSession({ store, sessionId: finished.id });
    expect(first.user.sandboxPlacement).toMatchObject({ backend: backend.name, handleId: id });

    // The model has no further answer, so that this run ends in the middle; its files are still there.
    const broken = runSessionLoop(first.user, first.agent, { ...options, persist: store });
    await expect(broken.synchronize()).rejects.toThrow();
    const second = await resumeSession({ store, sessionId: finished.id });
    expect(second.user.sandboxPlacement).toMatchObject({ handleId: id });
    const again = await second.user.requireSandbox();
    expect(new TextDecoder().decode(await again.readFile("done.txt"))).toBe("yes");
    expect(backend.live.size).toBe(1);
  });
});

describe("the place in the header of a session without rows", () => {
  const settings = { type: "variables", set: { tone: "kind" }, unset: [] } as const;

  test.each([
    { what: "nothing", drafts: [] },
    { what: "settings only", drafts: [settings] },
  ])("is where the first run acts, when the log holds $what", async ({ drafts }) => {
    await using store = openMemoryStore();
    const { session, backend } = aimed(asking());
    await store.create(createHeader({ id: "a", sandbox: session.sandboxPlacement }), { entries: drafts });
    const model = scripted([calling(callOf("1", "act")), saying("ok")]);
    const persist = { store, sessionId: "a" };
    const answer = await runSessionLoop(asking("Go."), someAgent(), { model, tools: [acting], persist });
    expect([...backend.live.keys()]).toEqual([answer.sandboxPlacement?.handleId]);
    expect(answer.transcript.toMessages().map(inShort)).toEqual([
      "user: Go.",
      "assistant: [act]",
      "tool: done",
      "assistant: ok",
    ]);
    await answer.closeSandbox();
  });

  test("does not make a run append stored rows again", async () => {
    await using store = openMemoryStore();
    const { session } = aimed(asking());
    const { id, sandboxPlacement: sandbox, transcript } = session;
    const entries = transcript.rows.map((row) => ({ type: "message", id: row.id, message: row.message }) as const);
    await store.create(createHeader({ id, sandbox }), { entries });
    const options = { model: scripted([saying("ok")]), persist: { store, sessionId: id } };
    const answer = await runSessionLoop(Session.of(transcript, { id }), someAgent(), options);
    expect(answer.transcript.toMessages().map(inShort)).toEqual(["user: Do it.", "assistant: ok"]);
  });

  test("is overridden by the place of the session that is run", async () => {
    await using store = openMemoryStore();
    const { session: stored, backend: theirs } = aimed(asking());
    await store.create(createHeader({ id: "a", sandbox: stored.sandboxPlacement }));
    const { session, backend } = aimed(asking());
    const model = scripted([calling(callOf("1", "act")), saying("ok")]);
    const options = { model, tools: [acting], persist: await SessionTree.on(store, "a") };
    const answer = await runSessionLoop(session, someAgent(), options);
    expect([backend.live.size, theirs.live.size]).toEqual([1, 0]);
    await answer.closeSandbox();
  });
});
