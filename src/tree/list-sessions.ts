import { checkPath } from "../stores/complete/valid-arguments.ts";
import { checkOptionsOf } from "../session/check-arguments.ts";
import { type SessionSummary, summaryOf } from "../session/listing.ts";
import { PAGE_ITEMS_MAX } from "../session/limits.ts";
import { openSessionFiles } from "./open-session-files.ts";
import { defaultSessionDirectory } from "./home.ts";

/**
 * Lists the sessions in a directory of session files, newest first; with a `cwd`, only those of that project. Files that
 * cannot be read are listed too, with their `damage`.
 */
export async function listSessions(
  options: { readonly directory?: string; readonly cwd?: string } = {},
): Promise<SessionSummary[]> {
  checkOptionsOf(options, { directory: true, cwd: true }, "listSessions");
  if (options.directory !== undefined) checkPath(options.directory, "directory");
  const directory = options.directory ?? defaultSessionDirectory();
  await using store = await openSessionFiles({ directory, readOnly: true });
  const rows: SessionSummary[] = [];
  const damaged = new Map<string, SessionSummary>();
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof store.list>> = await store.list({
      limit: PAGE_ITEMS_MAX,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(cursor === null ? {} : { cursor }),
    });
    for (const head of page.items) rows.push(summaryOf(head, (await store.pathOf(head.header.id)) ?? undefined));
    for (const { id, path, reason } of page.damaged) damaged.set(path, damagedRow(id, path, reason));
    cursor = page.next;
  } while (cursor !== null);
  return [...rows, ...damaged.values()];
}

function damagedRow(id: string | null, path: string, damage: string): SessionSummary {
  return {
    id: id ?? "",
    path,
    name: null,
    cwd: null,
    userId: null,
    createdAt: "",
    modifiedAt: "",
    messageCount: 0,
    firstMessage: null,
    status: "active",
    closed: false,
    damage,
  };
}
