import {
  type Entry,
  type EntryOf,
  type SessionHead,
  type SessionStore,
  SessionTree,
  UnknownEntryError,
} from "../../../index.ts";
import type { OpenRun } from "../../../session/log/open-runs.ts";
import { summaryOf } from "../../../session/listing.ts";
import { type Command, textOption } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";
import { printEntry } from "./print-entry.ts";
import { findEntryId, findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { printable } from "../../terminal.ts";

/** Shows what a session says. */
export const show: Command = {
  name: "show",
  summary: "Show what a session says, up to its leaf or to another entry.",
  arguments: [SESSION_ARGUMENT],
  options: {
    at: { value: "ENTRY", default: "leaf", what: "the entry where the path ends" },
    limit: { value: "N", default: "50", what: "how many entries, the latest" },
    all: { what: "the whole path, from its root" },
  },
  examples: [
    { line: "skein show last", what: "the end of the latest session" },
    { line: "skein show 0199a3 --all | less", what: "a session from its beginning" },
  ],
  json: {
    session: "the session, as in list",
    entries: "the entries of the path, oldest first, as they are in the log",
    answers: "who was asked about the calls of these entries: the answers, as they are in the log",
    runs: "the runs of the session that have not ended: runId, state, questions, expiresAt, notBefore",
    before: "what to give as --at for the entries before these, or null",
  },
  store: "existing",
  async run(context) {
    const { terminal, values } = context;
    await using store = await context.openStore();
    const head = await findSession(store, context.positionals[0] as string);
    const at = head.leafId === null ? null : await findEntryId(store, head, textOption(values, "at") ?? "leaf");
    const limit = values["all"] === true ? null : countOption(values, "limit");
    const entries = at === null ? [] : await pathTo(store, head, at, limit ?? null);
    const before = entries[0]?.parentId ?? null;
    const answers = await answersIn(store, head, entries);
    if (context.json) {
      context.printJson({ session: summaryOf(head), entries, answers, runs: head.openRuns, before });
      return 0;
    }
    const { header, name, status, openRuns } = head;
    terminal.line(terminal.bold(`${printable(name ?? "Session", 100)}  ${printable(header.id, 512)}  ${status}`));
    for (const run of openRuns) terminal.line(`Run ${printable(run.runId, 512)} ${describeRun(run)}`);
    if (before !== null) terminal.line(terminal.dim(`… what comes before: --at ${printable(before, 512)}, or --all`));
    for (const entry of entries) printEntry(terminal, entry, answerTo(entry, answers));
    return 0;
  },
};

function describeRun({ state, cancelled, questions = [] }: OpenRun): string {
  if (cancelled === true) return "was told to stop.";
  switch (state) {
    case "parked":
      return `waits for ${questions.length === 1 ? "an answer" : `${questions.length} answers`}: see skein approvals.`;
    case "answered":
      return "has its answers and waits to go on.";
    case "requested":
      return "waits to begin.";
    case "started":
      return "has started and has not ended: see skein runs.";
  }
}

/** The answers to questions about the calls among some entries of a path. */
async function answersIn(
  store: SessionStore,
  { header }: SessionHead,
  entries: readonly Entry[],
): Promise<readonly EntryOf<"approval">[]> {
  const calls = entries.some((entry) => entry.type === "message" && entry.message.role === "tool");
  const [first, last] = [entries[0], entries.at(-1)];
  if (!calls || first === undefined || last === undefined) return [];
  const answers: EntryOf<"approval">[] = [];
  for await (const entry of store.read(header.id, { after: first.seq, before: last.seq })) {
    if (entry.type === "approval" && entry.decision !== undefined) answers.push(entry);
  }
  return answers;
}

/** The answer that let a tool say something or kept it from running; call ids repeat, and the last one before it counts. */
function answerTo(entry: Entry, answers: readonly EntryOf<"approval">[]): EntryOf<"approval"> | null {
  if (entry.type !== "message" || entry.message.role !== "tool") return null;
  const { toolCallId } = entry.message;
  return answers.findLast(({ callId, seq }) => callId === toolCallId && seq < entry.seq) ?? null;
}

/** The last entries of the path to an entry, oldest first; all of them without a limit. */
async function pathTo(
  store: SessionStore,
  head: SessionHead,
  at: string,
  limit: number | null,
): Promise<readonly Entry[]> {
  if (limit === null) return (await SessionTree.on(store, head.header.id)).getBranch(at);
  const entries: Entry[] = [];
  for (let id: string | null = at; id !== null && entries.length < limit; ) {
    const entry: Entry | null = await store.getEntry(head.header.id, id);
    if (entry === null) throw new UnknownEntryError(head.header.id, id);
    entries.push(entry);
    id = entry.parentId;
  }
  return entries.reverse();
}
