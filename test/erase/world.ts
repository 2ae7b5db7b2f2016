import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppendMerge, SummaryMerge } from "../../src/lifecycle/index.ts";
import {
  type ContentPart,
  createAgent,
  createHeader,
  defineTool,
  type EntryDraft,
  SessionManager,
  type SessionStore,
} from "../../src/index.ts";
import { type ScriptedReply, scripted } from "../../src/models/index.ts";
import { localBackend } from "../../src/sandboxes/local/index.ts";
import "../../src/sandboxes/register-built-in.ts";

/** The user to erase. */
export const ADA = "ada@example.org";
/** Another user. */
export const BOB = "bob";

/** A store in which a user has written one word everywhere a word can be. */
export interface World {
  readonly manager: SessionManager;
  /** The number of her sessions, deleted ones included. */
  readonly sessions: number;
  /** Sessions of others without anything of her. */
  readonly untouched: readonly string[];
  /** Sessions of others that begin with hers. */
  readonly forks: readonly string[];
  /** Sessions of others in which she wrote. */
  readonly shared: readonly string[];
}

/**
 * Lets a user write a word in every possible way, in sessions of others too. Without `files`, an erasure is faster: before it
 * removes files, it waits a second.
 */
export async function makeWorld(store: SessionStore, word: string, { files = true } = {}): Promise<World> {
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
  await makeRepetitions(store, manager, word);
  await makeRequests(store, word, files);
  await store.create(createHeader({ id: "thrown-away", userId: ADA }), { entries: [said("thrown-1", word)] });
  await store.delete("thrown-away");
  await store.create(createHeader({ id: "calm", userId: BOB }), { entries: [said("calm-1", "nothing of the kind")] });
  await store.fork("calm", createHeader({ id: "calm-fork", userId: BOB }));
  return {
    manager,
    sessions: 3,
    untouched: ["calm", "calm-fork"],
    forks: ["fork", "fork-of-fork", "copied", "forked-and-deleted"],
    shared: [
      "trunk",
      "branch",
      "trunk-fork",
      "group",
      "group-fork",
      "group-deleted",
      "steered",
      "steered-fork",
      "clash",
      "asked",
      "outer",
      "inner",
      "outer-2",
      "inner-2",
      "woven",
      "woven-branch",
    ],
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

/** Forks by reference, of a fork, by copy, and a deleted one. */
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

/** Sessions of his in which she wrote, set variables, requested runs, steered and answered. */
async function makeGroups(store: SessionStore, word: string): Promise<void> {
  await store.create(createHeader({ id: "group", userId: BOB }), { entries: [said("group-1", "welcome")] });
  await store.append("group", [said("group-2", `here I am, ${word}`)], { by: ADA });
  await store.append("group", [said("group-3", "nice to meet you")], { by: BOB });
  await makeEdits(store, word);
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
      { type: "queued", id: "group-queued", runId: "r1", kind: "steer", content: `steer to ${word}`, by: ADA },
      ...repeatedBefore(word),
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

/** Edits of the context: his of her words, hers of his words, and one that he has undone. */
async function makeEdits(store: SessionStore, word: string): Promise<void> {
  const short = { role: "user", content: `${word}, in short` } as const;
  await store.append("group", [{ type: "context_edit", id: "group-edit-1", targetId: "group-2", message: short }], {
    by: BOB,
  });
  await store.append(
    "group",
    [
      { type: "context_edit", id: "group-edit-2", targetId: "group-3", message: short, reason: word },
      { type: "context_edit", id: "group-edit-3", targetId: "group-1", message: null, reason: `not for ${word}` },
    ],
    { by: ADA },
  );
  await store.append("group", [{ type: "context_edit", id: "group-edit-4", undo: "group-edit-3" }], { by: BOB });
}

/**
 * Entries that a run of an earlier version wrote without her as author: the result of a call that she denied, and her queued
 * input.
 */
function repeatedBefore(word: string): EntryDraft[] {
  const metadata = { "skein.queued": "group-queued" };
  const content = JSON.stringify({ error_kind: "denied", message: `no, ${word}` });
  return [
    { type: "message", message: { role: "tool", name: "look", toolCallId: "c", content } },
    { type: "message", message: { role: "user", content: `steer to ${word}`, metadata } },
  ];
}

/** Sessions of his in which runs and merges repeat her words, and checkpoints that she made. */
async function makeRepetitions(store: SessionStore, manager: SessionManager, word: string): Promise<void> {
  await runWith(store, manager, word);
  await runInsideWith(store, manager, word);
  await makeClash(store, manager, word);
  await makeOwnStrategy(store, manager, word);
  await store.create(createHeader({ id: "marked", userId: BOB }), { entries: [said("marked-1", "mine")] });
  await store.fork("marked", createHeader({ id: "marked-deleted", userId: BOB }));
  const actor = { userId: ADA, admin: true };
  for (const id of ["marked", "marked-deleted"]) {
    await manager.checkpoint(id, { metadata: { note: "his own" }, actor: BOB });
    await manager.checkpoint(id, { metadata: { note: `before ${word}` }, actor });
  }
  // Entries that were deleted before must not stay in a file either.
  const { id: dropped } = await manager.checkpoint("marked", { metadata: { note: `dropped ${word}` }, actor });
  await store.deleteCheckpoint(dropped);
  await store.delete("marked-deleted");
}

/** Runs that she requests in a session of his, with a schema, a model and files of hers, and what they cost her. */
async function makeRequests(store: SessionStore, word: string, files: boolean): Promise<void> {
  const manager = new SessionManager({ store, budgets: [{ per: "user", window: "1d", totalTokens: 1_000_000 }] });
  const ada = { actor: { userId: ADA, admin: true } };
  await store.create(createHeader({ id: "asked", userId: BOB }), { entries: [said("asked-1", "welcome")] });
  const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
  const answer: ScriptedReply = { role: "assistant", content: '{"found":1}', usage };
  const agentOf = () =>
    createAgent({ name: "helper", prompt: "Find it.", model: scripted([answer]), builtInTools: false });
  const output = { type: "object", properties: { found: { type: "number", description: `how often ${word}` } } };
  const input = [{ type: "text", text: `find ${word}` } as const, ...(files ? [fileOf(word)] : [])];
  await manager.request("asked", { agent: "helper", input, runId: "requested", options: { output } }, ada);
  await (await manager.recover("asked", { helper: agentOf() }))?.run;
  await manager.run("asked", agentOf(), [{ role: "user", content: `and ${word}` }], { ...ada, output, stop: [word] });
  await manager.request("asked", { agent: "helper", input: "Hi.", runId: "other-model", model: `p/${word}` }, ada);
  await manager.cancel("asked", { runId: "other-model" }, ada);
}

/** A run of his that she steers, whose call she denies with a reason, and that she cancels. */
async function runWith(store: SessionStore, manager: SessionManager, word: string): Promise<void> {
  await store.create(createHeader({ id: "steered", userId: BOB }));
  const ada = { actor: { userId: ADA, admin: true } };
  const called = (id: string): ScriptedReply => {
    const toolCalls = [{ id, name: "look", arguments: "{}" }];
    return { role: "assistant", content: "", toolCalls };
  };
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: { type: "object" },
    needsApproval: true,
    execute: () => "nothing",
  });
  const replies = [called("c1"), called("c2"), "as you wish", called("c3")];
  const agent = createAgent({ name: "helper", prompt: "Look.", model: scripted(replies), tools: [look] });
  const answered = manager.run("steered", agent, "begin");
  for await (const event of answered) {
    if (event.type !== "approval-required") continue;
    const { question, callId } = event.approval;
    if (callId === "c1") {
      await manager.steer("steered", `go to ${word}`, ada);
      await manager.deny("steered", question, { reason: `not with ${word}` }, ada);
    } else await manager.approve("steered", question, {}, ada);
  }
  const cancelled = manager.run("steered", agent, "and again");
  for await (const event of cancelled) {
    if (event.type === "approval-required") await manager.cancel("steered", { reason: `enough of ${word}` }, ada);
  }
  await Promise.resolve(cancelled).catch(() => {});
  await store.fork("steered", createHeader({ id: "steered-fork", userId: BOB }));
}

/** Runs of his whose tools run an agent: she denies a call of that agent with a reason, in the inner or in the outer session. */
async function runInsideWith(store: SessionStore, manager: SessionManager, word: string): Promise<void> {
  const agentOf = (name: string, tool: string, execute: () => Promise<unknown>, needsApproval = false) => {
    const toolCalls = [{ id: tool, name: tool, arguments: "{}" }];
    const model = scripted([{ role: "assistant", content: "", toolCalls }, "as you wish"]);
    const tools = [
      defineTool({ name: tool, description: tool, parameters: { type: "object" }, needsApproval, execute }),
    ];
    return createAgent({ name, prompt: "", model, builtInTools: false, tools });
  };
  for (const [outerId, innerId, answeredId] of [
    ["outer", "inner", "outer"],
    ["outer-2", "inner-2", "inner-2"],
  ] as const) {
    for (const id of [outerId, innerId]) await store.create(createHeader({ id, userId: BOB }));
    const inner = agentOf("inner", "look", async () => "nothing", true);
    const outer = agentOf("outer", "ask", async () => void (await manager.run(innerId, inner, "look")));
    for await (const event of manager.run(outerId, outer, "begin")) {
      if (event.type !== "approval-required") continue;
      const denial = { reason: `not with ${word}` };
      await manager.deny(answeredId, event.approval.question, denial, { actor: { userId: ADA, admin: true } });
    }
  }
}

/** Her turns, variables and extension messages in a branch, under ids that his session has used for others meanwhile. */
async function makeClash(store: SessionStore, manager: SessionManager, word: string): Promise<void> {
  await store.create(createHeader({ id: "clash", userId: BOB }), { entries: [said("clash-1", "the beginning")] });
  await store.fork("clash", createHeader({ id: "clash-branch", userId: BOB }));
  const drafts = (text: string): EntryDraft[] => [
    said("same-turn", text),
    { type: "variables", id: "same-set", set: { [text]: text }, unset: [] },
    { type: "custom_message", id: "same-note", customType: "note", content: text, display: true },
  ];
  await store.append("clash-branch", drafts(`clashing ${word}`), { by: ADA });
  await store.append("clash", drafts("his"));
  await manager.merge("clash", "clash-branch", { strategy: new AppendMerge() });
}

/** A strategy that makes a turn and variables of what she wrote in a branch. */
async function makeOwnStrategy(store: SessionStore, manager: SessionManager, word: string): Promise<void> {
  await store.create(createHeader({ id: "woven", userId: BOB }), { entries: [said("woven-1", "the beginning")] });
  await store.fork("woven", createHeader({ id: "woven-branch", userId: BOB }));
  const [hers, his] = [{ [`about ${word}`]: word }, { his: "his own" }];
  await store.append("woven-branch", [said("woven-2", word), { type: "variables", set: hers, unset: [] }], { by: ADA });
  await store.append("woven-branch", [{ type: "variables", set: his, unset: [] }], { by: BOB });
  const turn = { role: "user", content: `made of ${word}` } as const;
  const merge = () => ({ turns: [turn], variables: { ...hers, ...his } });
  await manager.merge("woven", "woven-branch", { strategy: { name: "weave", merge } });
}

/** A turn of any user. */
export function said(id: string, text: string): EntryDraft {
  return { type: "message", id, message: { role: "user", content: text } };
}

function call(id: string, word: string): EntryDraft {
  const toolCalls = [{ id: "c", name: "look", arguments: JSON.stringify({ word }) }];
  return { type: "message", id, message: { role: "assistant", content: `looking for ${word}`, toolCalls } };
}

/** A file with a text in its name and its content, which is long enough to be stored beside the log. */
function fileOf(text: string): ContentPart {
  const data = Buffer.from(`${text}\n`.repeat(2_000)).toString("base64");
  return { type: "file", name: text.replaceAll("\u0000", ""), mediaType: "text/plain", data };
}

/**
 * A hundred variants of a word: in quotes, in other letters, beside characters with a special meaning in JSON, SQL and indexes.
 */
export function variantsOf(word: string): readonly string[] {
  const around = [
    '"',
    "'",
    "\\",
    "\n",
    "\t",
    "\u0000",
    "%",
    "_",
    "*",
    ".",
    "/",
    "é",
    "ß",
    "日本",
    "🦜",
    "\u202e",
    "<b>",
    "--",
    ";",
    " ",
  ];
  const forms = [word, word.toUpperCase(), `${word}${word}`, `x${word}y`, `${word}-é`.normalize("NFD")];
  return around.flatMap((sign) => forms.map((form) => `${sign}${form}${sign}`));
}

/** Lets a user write each of several texts in another user's session, in every kind of entry and checkpoint. */
export async function sayInEveryForm(
  manager: SessionManager,
  sessionId: string,
  texts: readonly string[],
): Promise<void> {
  const { store } = manager;
  const options = { by: ADA, guard: { holds: true } } as const;
  for (const [index, text] of texts.entries()) {
    const id = `form-${index}`;
    const plain = text.replaceAll("\u0000", "");
    const asked = { role: "user", content: [{ type: "text", text }, fileOf(text)] } as const;
    const forms: EntryDraft[] = [
      said(id, text),
      { type: "message", id, message: { role: "user", content: [{ type: "text", text }], metadata: { text } } },
      { type: "variables", id, set: { text }, unset: [] },
      { type: "variables", id, set: {}, unset: [], systemPrompt: text },
      { type: "custom", id, customType: "note", data: { text } },
      { type: "custom_message", id, customType: "note", content: text, display: true },
      { type: "session_info", id, name: plain },
      { type: "label", id, targetId: "group-1", label: plain },
      { type: "cancel", id, runId: "r1", reason: text },
      { type: "queued", id, runId: "r1", kind: "followUp", content: text },
      { type: "erased", id, was: plain, reason: text },
      { type: "context_edit", id, targetId: "group-1", message: { role: "user", content: text }, reason: text },
      { type: "run_request", id: `run:${id}`, runId: id, agent: "helper", model: `p/${plain}`, messages: [asked] },
      { type: "setup", id, agent: "helper", instructions: text, output: { description: text }, stop: [text] },
      { type: "message", id, message: { role: "user", content: [fileOf(text)] } },
    ];
    await store.append(sessionId, [forms[index % forms.length] as EntryDraft], options);
    if (index % 10 === 0)
      await manager.checkpoint(sessionId, { metadata: { text }, actor: { userId: ADA, admin: true } });
  }
}
