import type { SessionHead } from "../session/log/fold.ts";
import { type Answer, composeAnswer, PREFACE, tokensAtMost } from "./answer.ts";
import { matchesFilter, originOf, type SessionFilter, type SessionScope } from "./session-scope.ts";

/** How many sessions are read at a time, and how often at most for one answer. */
const PAGE = 50;
const PAGES_MAX = 40;

/** The arguments of `list_sessions`. */
export interface ListArguments extends SessionFilter {
  readonly cursor?: string | undefined;
}

/** Sessions in scope, the latest message first. */
export async function listSessions(scope: SessionScope, args: ListArguments): Promise<string> {
  const query = scope.queryFor(args);
  const heads: SessionHead[] = [];
  let cursor = args.cursor;
  let next: string | null = null;
  for (let pages = 0; query !== null && pages < PAGES_MAX; pages++) {
    const position = cursor === undefined ? {} : { cursor };
    const page = await scope.manager.list({ ...query, ...position, limit: PAGE }, scope.as);
    const matching = page.items.filter((head) => scope.includes(head) && matchesFilter(head, args));
    const fit = countFitting([...heads, ...matching]) - heads.length;
    heads.push(...matching.slice(0, fit));
    next = page.next;
    if (fit < matching.length) {
      // The cursor of a page is after its last session, so the page is read again up to the last session that fits.
      const last = fit === 0 ? -1 : page.items.indexOf(matching[fit - 1] as SessionHead);
      next =
        last < 0
          ? (cursor ?? null)
          : (await scope.manager.list({ ...query, ...position, limit: last + 1 }, scope.as)).next;
      break;
    }
    if (next === null) break;
    cursor = next;
  }
  return composeAnswer((answer) => {
    answer.add(PREFACE);
    answer.add("");
    for (const head of heads) answer.add(rowOf(answer, head));
    const none = heads.length === 0 ? "No session was found. " : "";
    const end =
      next === null ? "There are no more sessions." : `More: list_sessions with "cursor": ${JSON.stringify(next)}.`;
    return answer.end(`${none}${end} Call read_session to read one.`);
  });
}

function countFitting(heads: readonly SessionHead[]): number {
  let count = 0;
  composeAnswer((answer) => {
    let room = answer.room - tokensAtMost(PREFACE) - 2;
    count = 0;
    for (const head of heads) {
      room -= tokensAtMost(`${rowOf(answer, head)}\n`);
      if (room < 0) break;
      count++;
    }
    return "";
  });
  return count;
}

function rowOf(answer: Answer, head: SessionHead): string {
  return `- ${originOf(answer, head)}`;
}
