import {
  type Entry,
  type EntryOf,
  type SessionHead,
  type SessionStore,
  SessionTree,
  UnknownEntryError,
} from "../../../index.ts";
import { asksOf, type OpenRun } from "../../../session/log/open-runs.ts";
import { summaryOf } from "../../../session/listing.ts";
import { type Command, textOption } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";
import { printEntry } from "./print-entry.ts";
import { ENTRY_NAMES, findEntry, findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { frameworkOf, recordOf } from "../../../session/framework.ts";
import { counted, printable } from "../../terminal.ts";

/** Prints the messages of a session. */
export const show: Command = {
  name: "show",
  summary: "Show the messages of a session, up to its leaf or to another entry.",
  arguments: [SESSION_ARGUMENT],
  options: {
    at: { value: "ENTRY", default: "leaf", what: `the last entry to show: ${ENTRY_NAMES}` },
    limit: { value: "N", default: "50", what: "show the latest N entries" },
    all: { what: "show all entries from the root" },
    records: { what: "also show the entries that LangGraph or the OpenAI Agents SDK recorded beside the messages" },
  },
  examples: [
    { line: "skein show last", what: "the end of the latest session" },
    { line: "skein show 0199a3 --all | less", what: "a session from its beginning" },
  ],
  json: {
    session: "the session, as in list",
    entries: "the entries of the path as in the log, oldest first",
    answers: "the approvals and denials of these entries' calls, as in the log",
    runs: "the runs of the session that have not ended: runId, state, questions, expiresAt, notBefore",
    before: "the --at that shows the entries before these, or null",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    const { terminal, values } = context;
    await using store = await context.openStore();
    const head = await findSession(store, context.positionals[0] as string);
    const at = head.leafId === null ? null : (await findEntry(store, head, textOption(values, "at") ?? "leaf")).id;
    const limit = values["all"] === true ? null : countOption(values, "limit");
    const entries = at === null ? [] : await pathTo(store, head, at, limit ?? null);
    const before = entries[0]?.parentId ?? null;
    const answers = await answersIn(store, head, entries);
    if (context.json) {
      context.printJson({ session: summaryOf(head), entries, answers, runs: head.openRuns, before });
      return 0;
    }
    const { header, name, status, openRuns } = head;
    const kept = frameworkOf(header);
    const heading = name ?? (kept === null ? "Session" : `${kept.framework} ${kept.thread}`);
    terminal.line(terminal.bold(`${printable(heading, 100)}  ${printable(header.id, 512)}  ${status}`));
    for (const run of openRuns) terminal.line(`Run ${printable(run.runId, 512)} ${describeRun(run)}`);
    if (before !== null) terminal.line(terminal.dim(`… earlier entries: --at ${printable(before, 512)}, or --all`));
    if (values["records"] === true) {
      for (const entry of entries) printEntry(terminal, entry, answerTo(entry, answers));
      return 0;
    }
    for (const part of foldRecords(entries)) {
      if ("entry" in part) printEntry(terminal, part.entry, answerTo(part.entry, answers));
      else
        terminal.line(
          `\n${terminal.dim(`${counted(part.records, "record", "records")} of ${part.framework}: --records`)}`,
        );
    }
    return 0;
  },
};

/** The entries in order; consecutive records of a framework are replaced by their count. */
function foldRecords(
  entries: readonly Entry[],
): readonly ({ readonly entry: Entry } | { readonly framework: string; readonly records: number })[] {
  const parts: ({ entry: Entry } | { framework: string; records: number })[] = [];
  for (const entry of entries) {
    const framework = recordOf(entry);
    const last = parts.at(-1);
    if (framework === null) parts.push({ entry });
    else if (last !== undefined && "records" in last && last.framework === framework) last.records += 1;
    else parts.push({ framework, records: 1 });
  }
  return parts;
}

function describeRun(run: OpenRun): string {
  if (run.cancelled === true) return "is being cancelled.";
  const asked = asksOf(run).length;
  if (asked > 0) return `waits for ${asked === 1 ? "an answer" : `${asked} answers`}: see skein approvals.`;
  switch (run.state) {
    case "parked":
    case "answered":
      return "is answered and waits to continue.";
    case "requested":
      return "waits to start.";
    case "started":
      return "has started and has not ended: see skein runs.";
  }
}

/** The answers to questions about the calls of these entries. */
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

/** The approval or denial of a tool result's call. Call ids may repeat: the last answer before the result counts. */
function answerTo(entry: Entry, answers: readonly EntryOf<"approval">[]): EntryOf<"approval"> | null {
  if (entry.type !== "message" || entry.message.role !== "tool") return null;
  const { toolCallId } = entry.message;
  return answers.findLast(({ callId, seq }) => callId === toolCallId && seq < entry.seq) ?? null;
}

/** The last entries of the path to an entry, oldest first; a null limit returns all. */
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
