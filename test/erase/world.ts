import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppendMerge, SummaryMerge } from "../../src/lifecycle/index.ts";
import { createHeader, type EntryDraft, SessionManager, type SessionStore } from "../../src/index.ts";
import { localBackend } from "../../src/sandboxes/local/index.ts";
import "../../src/sandboxes/register-built-in.ts";

/** Who is erased. */
export const ADA = "ada@example.org";
/** Whose sessions are beside hers. */
export const BOB = "bob";

/** A store in which a person has said one word wherever a word can be. */
export interface World {
  readonly manager: SessionManager;
  /** How many sessions are hers, those in the trash included. */
  readonly sessions: number;
  /** Sessions of others that have nothing of her. */
  readonly untouched: readonly string[];
  /** Sessions of others that begin with hers. */
  readonly forks: readonly string[];
  /** Sessions of others in which she spoke. */
  readonly shared: readonly string[];
}

/** Lets a person say a word in every way there is, among others. */
export async function makeWorld(store: SessionStore, word: string): Promise<World> {
  const manager = new SessionManager({ store });
  const ada = { actor: { userId: ADA } };
  await store.create(createHeader({ id: "own", userId: ADA, metadata: { about: word } }), {
    entries: [{ type: "variables", set: { secret: word }, unset: [], systemPrompt: `Mind ${word}.`, id: "own-set" }],
  });
  await manager.addTurn("own", { role: "user", content: `I say ${word}`, turnId: "own-1" }, ada);
  await store.append("own", [
    call("own-2", word),
    {
      type: "message",
      id: "own-3",
      message: { role: "tool", name: "look", toolCallId: "c", content: `it gives ${word}` },
    },
    { type: "compaction", id: "own-4", summary: `They spoke of ${word}`, firstKeptEntryId: "own-3", tokensBefore: 9 },
    { type: "session_info", name: `All about ${word}` },
    { type: "label", targetId: "own-1", label: word },
    { type: "custom", customType: "note", data: { word } },
  ]);
  await keepFiles(manager, word);
  await makeForks(store, manager, word);
  await makeMerges(store, manager, word);
  await makeGroups(store, word);
  await store.create(createHeader({ id: "thrown-away", userId: ADA }), { entries: [said("thrown-1", word)] });
  await store.delete("thrown-away");
  await store.create(createHeader({ id: "calm", userId: BOB }), { entries: [said("calm-1", "nothing of the kind")] });
  await store.fork("calm", createHeader({ id: "calm-fork", userId: BOB }));
  return {
    manager,
    sessions: 3,
    untouched: ["calm", "calm-fork"],
    forks: ["fork", "fork-of-fork", "copied", "forked-and-deleted"],
    shared: ["trunk", "branch", "trunk-fork", "group", "group-fork", "group-deleted"],
  };
}

/** A checkpoint that holds a file. */
async function keepFiles(manager: SessionManager, word: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "skein-erase-"));
  await writeFile(join(directory, "secret.txt"), word);
  const sandbox = await localBackend.open({ workingDir: directory, isolation: "off" });
  await manager.checkpoint("own", { sandbox, metadata: { about: word } });
  await sandbox.close();
  await rm(directory, { recursive: true, force: true });
}

/** Forks by reference, of a fork, by copy, and one in the trash. */
async function makeForks(store: SessionStore, manager: SessionManager, word: string): Promise<void> {
  await store.fork("own", createHeader({ id: "own-branch", userId: ADA }));
  await store.append("own-branch", [said("own-branch-1", word)]);
  await store.fork("own-branch", createHeader({ id: "fork", userId: BOB }));
  await store.append("fork", [
    said("fork-1", "in my own words"),
    { type: "compaction", id: "fork-2", summary: `So ${word}`, firstKeptEntryId: "fork-1", tokensBefore: 9 },
    said("fork-3", "and on"),
  ]);
  await store.fork("fork", createHeader({ id: "fork-of-fork", userId: BOB }));
  await store.append("fork-of-fork", [said("fork-of-fork-1", "further on")]);
  await store.fork("own", createHeader({ id: "forked-and-deleted", userId: BOB }), { at: "own-2" });
  await store.delete("forked-and-deleted");
  const { header } = (await store.head("own")) ?? {};
  const entries: EntryDraft[] = [];
  for await (const entry of store.read("own", { before: 2 })) entries.push(entry);
  const forkedFrom = { sessionId: header?.id ?? "", entryId: "own-1", version: 2 };
  await store.create(createHeader({ id: "copied", userId: BOB, forkedFrom }), { entries });
  await manager.addTurn("copied", { role: "user", content: "mine", turnId: "copied-1" });
}

/** Her words in a branch of a session of his, merged turn by turn and as a summary, and a fork of that session afterwards. */
async function makeMerges(store: SessionStore, manager: SessionManager, word: string): Promise<void> {
  await store.create(createHeader({ id: "trunk", userId: BOB }), { entries: [said("trunk-1", "the beginning")] });
  await store.fork("trunk", createHeader({ id: "branch", userId: BOB }));
  await store.append("branch", [said("branch-1", `merged ${word}`)], { by: ADA });
  await manager.merge("trunk", "branch", { strategy: new AppendMerge() });
  await store.append("branch", [said("branch-2", `summed up ${word}`)], { by: ADA });
  const summarize = (): string => `They said ${word}`;
  await manager.merge("trunk", "branch", { strategy: new SummaryMerge({ summarize }) });
  await store.append("trunk", [said("trunk-2", "the end")]);
  await store.fork("trunk", createHeader({ id: "trunk-fork", userId: BOB }));
}

/** Sessions of his in which she spoke, set, asked, steered and answered. */
async function makeGroups(store: SessionStore, word: string): Promise<void> {
  await store.create(createHeader({ id: "group", userId: BOB }), { entries: [said("group-1", "welcome")] });
  await store.append("group", [said("group-2", `here I am, ${word}`)], { by: ADA });
  await store.append("group", [said("group-3", "nice to meet you")], { by: BOB });
  await store.append("group", [{ type: "variables", id: "group-4", set: { hers: word }, unset: [] }], { by: ADA });
  await store.append("group", [{ type: "session_info", name: `${word} and friends` }], { by: ADA });
  await store.append(
    "group",
    [{ type: "run_request", id: "run:r1", runId: "r1", agent: "helper", input: `do ${word}` }],
    {
      by: ADA,
    },
  );
  await store.append("group", [
    { type: "run", runId: "r1", phase: "started", claim: 0 },
    { type: "approval", id: "question", runId: "r1", callId: "c", asked: { tool: "look" } },
  ]);
  const answer = { approved: false, reason: `no, ${word}` };
  await store.append(
    "group",
    [
      {
        type: "approval",
        id: "answer:question",
        runId: "r1",
        callId: "c",
        question: "question",
        decision: answer,
        note: word,
        by: ADA,
      },
      { type: "queued", runId: "r1", kind: "steer", content: `steer to ${word}`, by: ADA },
      { type: "run", runId: "r1", phase: "finished" },
      { type: "compaction", id: "group-5", summary: `She said ${word}`, firstKeptEntryId: "group-3", tokensBefore: 9 },
      said("group-6", "and so on"),
    ],
    { guard: { holds: true } },
  );
  await store.append(
    "group",
    [{ type: "run_request", id: "run:r2", runId: "r2", agent: "helper", input: `later ${word}` }],
    {
      by: ADA,
    },
  );
  await store.fork("group", createHeader({ id: "group-fork", userId: BOB }));
  await store.append("group-fork", [said("group-fork-1", "elsewhere")]);
  await store.fork("group", createHeader({ id: "group-deleted", userId: BOB }));
  await store.delete("group-deleted");
}

/** A turn of whoever it is. */
export function said(id: string, text: string): EntryDraft {
  return { type: "message", id, message: { role: "user", content: text } };
}

function call(id: string, word: string): EntryDraft {
  const toolCalls = [{ id: "c", name: "look", arguments: JSON.stringify({ word }) }];
  return { type: "message", id, message: { role: "assistant", content: `looking for ${word}`, toolCalls } };
}
