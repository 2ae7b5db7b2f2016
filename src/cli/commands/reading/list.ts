import { readdir } from "node:fs/promises";
import { homedir } from "node:os";
import { relative, resolve } from "node:path";
import type { SessionHead, SessionStatus, SessionStore } from "../../../index.ts";
import type { SessionPage, SessionQuery } from "../../../session/store.ts";
import { asksOf } from "../../../session/log/open-runs.ts";
import { isIn } from "../../../sandboxes/local/follow-links.ts";
import { summaryOf } from "../../../session/listing.ts";
import { storePathOf } from "../../../stores/store-path.ts";
import { defaultSessionDirectory } from "../../../tree/home.ts";
import { type Command, type CommandContext, type CommandOption, textOption, textsOption } from "../../command.ts";
import { storeExists } from "../../open-named-store.ts";
import { countOption } from "../../options/option-values.ts";
import { findSession, titleOf } from "../../options/session-reference.ts";
import { tableLines } from "../../table.ts";
import { counted, printable, shortTime } from "../../terminal.ts";

/** The option that filters sessions by status. */
export const STATUS_OPTION: CommandOption = {
  value: "STATUS",
  repeated: true,
  choices: ["active", "suspended", "closed", "expired"],
  what: "only sessions with this status",
};

const FILTERS: readonly string[] = ["user", "cwd", "status", "parent", "deleted", "cursor"];

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
  summary: "List sessions, latest message first.",
  details: "A session with a run that waits for approval is marked with asks; skein approvals lists the questions.",
  arguments: [],
  options: {
    user: { value: "ID", what: "only sessions of this user" },
    cwd: { value: "DIRECTORY", what: "only sessions of this directory" },
    status: STATUS_OPTION,
    parent: { value: "SESSION", what: "only forks and other children of this session" },
    deleted: { what: "list deleted sessions instead" },
    limit: { value: "N", default: "20", what: "at most this many" },
    cursor: { value: "CURSOR", what: "continue an earlier list; it prints the cursor" },
    all: { what: "list all sessions" },
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
      "the sessions: id, name, userId, cwd, status, closed, createdAt, modifiedAt, messageCount, firstMessage, openRuns, branch (of a fork, or null)",
    damaged: "sessions that cannot be read: id, path, reason",
    next: "the --cursor of the next page, or null",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    if (textOption(context.values, "store") === undefined && !(await storeExists(context.storeUrl))) {
      if (context.json) context.printJson({ sessions: [], damaged: [], next: null });
      else if (!(await tellOfSessionFiles(context)))
        context.fail("There are no sessions yet. Start one with skein chat, or name another store with --store URL.");
      return 0;
    }
    await using store = await context.openStore();
    const { items, damaged, next } = await readPage(store, context);
    if (context.json) context.printJson({ sessions: items.map(jsonOf), damaged, next });
    else {
      for (const line of tableLines(COLUMNS, items.map(rowOf))) context.terminal.line(line);
      for (const { path, reason } of damaged) context.fail(`${path} cannot be read: ${reason}`);
      if (items.length === 0) await tellOfSessionFiles(context);
      if (next !== null) context.fail(`There are more; list them with --cursor ${next} or --all.`);
    }
    return damaged.length === 0 ? 0 : 1;
  },
};

/**
 * If the store is empty but the default directory of session files is not, tells how to list that; returns whether it
 * did.
 */
async function tellOfSessionFiles({ storeUrl, values, fail }: CommandContext): Promise<boolean> {
  const directory = defaultSessionDirectory();
  const isFiltered = FILTERS.some((name) => values[name] !== undefined && values[name] !== false);
  if (isFiltered || resolve(storePathOf(storeUrl) ?? "") === directory) return false;
  const names = await readdir(directory).catch(() => []);
  const count = names.filter((name) => /\.jsonl(\.__partial__)?$/.test(name)).length;
  if (count === 0) return false;
  const shown = `jsonl:${tilde(directory)}`;
  fail(
    `There are no sessions in this store, but ${counted(count, "session file", "session files")} in ${tilde(directory)}; skein list --store ${shown} lists them.`,
  );
  return true;
}

/** A path with `~` for the home directory, as both shells and store URLs accept it. */
function tilde(path: string): string {
  return isIn(path, homedir()) ? `~/${relative(homedir(), path)}` : path;
}

function jsonOf(head: SessionHead): object {
  return { ...summaryOf(head), openRuns: head.openRuns, branch: head.header.forkedFrom?.branchName ?? null };
}

/** A session as a table row: id, time, status and whether it waits for approval, turns, name. */
export function rowOf(head: SessionHead): readonly string[] {
  const { header, modifiedAt, status, messageCount, openRuns } = head;
  const standing = openRuns.some((run) => asksOf(run).length > 0) ? `${status}, asks` : status;
  return [printable(header.id, 512), shortTime(modifiedAt), standing, String(messageCount), titleOf(head)];
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
