import { createHeader, openStore, type SessionStore } from "skein";
import { createServer, type SkeinServer } from "skein/http";
import { join } from "node:path";
import { formatCount, formatMs } from "../format.ts";
import { messageOf } from "../message-of.ts";
import { race, type Sample } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Section } from "../section.ts";
import { bestMs, medianMs, timeRatio } from "../statistics.ts";

const section = "search";
const MESSAGES_EACH = 4;
/** As many hits as one answer of `search_sessions` needs: a page, and one that says whether there are more. */
const HITS = 9;

/** A search in many sessions: the store's own, and the tool of the MCP server on top of it. */
export const searchSection: Section = {
  name: section,
  async run(bench) {
    const { sessionsSearched, lists, warmups } = bench.sizes;
    bench.progress(`search: making ${formatCount(sessionsSearched)} sessions`);
    await using store = await openStore(`sqlite:${join(await bench.fixtures.folder("search"), "skein.db")}`);
    await fill(store, sessionsSearched);
    const server = await createServer({ store });
    const rows: Row[] = [];
    for (const [what, words] of [
      ["a word that every session has", "session"],
      ["two words and a phrase", 'lease checkpoint "session 7 "'],
    ] as const) {
      bench.progress(`search: ${what}`);
      const { tool, alone } = await race(
        {
          tool: { run: () => askTool(server, words) },
          alone: { run: async () => void (await store.search(words, { userId: "local", limit: HITS })) },
        },
        { rounds: lists, warmups },
      );
      rows.push(
        row(`\`search_sessions\` over ${formatCount(sessionsSearched)} sessions, sqlite, ${what}`, tool, alone),
      );
    }
    await server.close();
    return rows;
  },
};

function row(what: string, tool: readonly Sample[], alone: readonly Sample[]): Row {
  const ratio = timeRatio(tool, alone);
  return {
    ...{ section, what, ratio },
    measured: `${formatMs(medianMs(tool))}, best round ${formatMs(bestMs(tool))}`,
    against: `${formatMs(medianMs(alone))}, \`store.search\` alone`,
    target: atMost(ratio, 1.5),
  };
}

async function fill(store: SessionStore, sessions: number): Promise<void> {
  for (let session = 0; session < sessions; session++) {
    const { header } = await store.create(createHeader({ cwd: "/project", userId: "local" }));
    const drafts = Array.from({ length: MESSAGES_EACH }, (_, index) => messageOf(session * MESSAGES_EACH + index));
    const named = { role: "user" as const, content: `session ${session % 100} of many` };
    await store.append(
      header.id,
      [...drafts, named].map((message) => ({ type: "message" as const, message })),
    );
  }
}

async function askTool(server: SkeinServer, words: string): Promise<void> {
  const call = { name: "search_sessions", arguments: { words } };
  const response = await server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call }),
    }),
  );
  const text = await response.text();
  if (!text.includes("This is a record") || text.includes("No session"))
    throw new Error(`The tool answered ${text.slice(0, 300)}`);
}
