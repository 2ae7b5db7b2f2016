import { resolve } from "node:path";
import type { SessionHead, SessionStatus, SessionStore } from "../../../index.ts";
import type { SessionPage, SessionQuery } from "../../../session/store.ts";
import { summaryOf } from "../../../session/listing.ts";
import { type Command, type CommandContext, type CommandOption, textOption, textsOption } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";
import { findSession } from "../../options/session-reference.ts";
import { tableLines } from "../../table.ts";
import { printable, shortTime } from "../../terminal.ts";

/** The statuses to choose from. */
export const STATUS_OPTION: CommandOption = {
  value: "STATUS",
  repeated: true,
  choices: ["active", "suspended", "closed", "expired"],
  what: "only sessions of this status",
};

const COLUMNS = [
  { title: "ID" },
  { title: "LAST MESSAGE" },
  { title: "STATUS" },
  { title: "TURNS", right: true },
  { title: "NAME" },
];

/** Lists sessions. */
export const list: Command = {
  name: "list",
  summary: "List sessions, the one with the latest message first.",
  details: "A session of which a run waits for an answer is marked with asks; skein approvals says what.",
  arguments: [],
  options: {
    user: { value: "ID", what: "only sessions of this user" },
    cwd: { value: "DIRECTORY", what: "only sessions of this project" },
    status: STATUS_OPTION,
    parent: { value: "SESSION", what: "only sessions that came from this one" },
    deleted: { what: "deleted sessions instead, which can be brought back" },
    limit: { value: "N", default: "20", what: "how many" },
    cursor: { value: "CURSOR", what: "go on where an earlier list ended" },
    all: { what: "all of them, however many" },
  },
  examples: [
    { line: "skein list", what: "the latest sessions" },
    {
      line: "skein list --user user-1 --status active --all --json",
      what: "all open sessions of a user, for a program",
    },
  ],
  json: {
    sessions:
      "the sessions: id, name, userId, cwd, status, closed, createdAt, modifiedAt, messageCount, firstMessage, openRuns",
    damaged: "sessions that cannot be read: id, path, reason",
    next: "what to give as --cursor for those that follow, or null",
  },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    const { items, damaged, next } = await readPage(store, context);
    if (context.json) context.printJson({ sessions: items.map(jsonOf), damaged, next });
    else {
      for (const line of tableLines(COLUMNS, items.map(rowOf))) context.terminal.line(line);
      for (const { path, reason } of damaged) context.fail(`${path} cannot be read: ${reason}`);
      if (next !== null) context.fail(`There are more; go on with --cursor ${next} or --all.`);
    }
    return damaged.length === 0 ? 0 : 1;
  },
};

function jsonOf(head: SessionHead): object {
  return { ...summaryOf(head), openRuns: head.openRuns };
}

/** A session as a row of a listing: id, time, status and whether it waits for an answer, turns, name. */
export function rowOf({
  header,
  modifiedAt,
  status,
  messageCount,
  name,
  firstMessage,
  openRuns,
}: SessionHead): readonly string[] {
  const standing = openRuns.some(({ state }) => state === "parked") ? `${status}, asks` : status;
  const title = printable(name ?? firstMessage ?? "", 60);
  return [printable(header.id, 512), shortTime(modifiedAt), standing, String(messageCount), title];
}

async function readPage(store: SessionStore, { values, signal }: CommandContext): Promise<SessionPage> {
  const query = await queryOf(store, values);
  const items: SessionHead[] = [];
  const damaged: SessionPage["damaged"][number][] = [];
  let cursor = textOption(values, "cursor");
  for (;;) {
    signal.throwIfAborted();
    const page = await store.list({ ...query, ...(cursor !== undefined && { cursor }) });
    items.push(...page.items);
    damaged.push(...page.damaged);
    if (values["all"] !== true || page.next === null) return { items, damaged, next: page.next };
    cursor = page.next;
  }
}

async function queryOf(store: SessionStore, values: CommandContext["values"]): Promise<SessionQuery> {
  const [userId, cwd, parent] = [textOption(values, "user"), textOption(values, "cwd"), textOption(values, "parent")];
  const status = textsOption(values, "status") as readonly SessionStatus[];
  const parentId = parent === undefined ? undefined : (await findSession(store, parent)).header.id;
  const limit = countOption(values, "limit");
  return {
    deleted: values["deleted"] === true,
    ...(userId !== undefined && { userId }),
    ...(cwd !== undefined && { cwd: resolve(cwd) }),
    ...(status.length > 0 && { status }),
    ...(parentId !== undefined && { parentId }),
    ...(limit !== undefined && values["all"] !== true && { limit }),
  };
}
