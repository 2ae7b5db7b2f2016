import type { Client, ListSessions } from "skein/client";
import { expect, test } from "vitest";
import { readSessions } from "./read-sessions.ts";
import { NO_FILTER } from "./session-filter.ts";

const signal = new AbortController().signal;

/** A fake server with the given number of sessions. */
function clientOf(count: number): { readonly client: Client; readonly asked: ListSessions[] } {
  const asked: ListSessions[] = [];
  const sessions = Array.from({ length: count }, (_, index) => ({
    header: { id: String(index) },
    status: "active",
    running: null,
    openRuns: [],
  }));
  const list = async (query: ListSessions): Promise<unknown> => {
    asked.push(query);
    const start = Number(query.cursor ?? 0);
    const end = Math.min(start + (query.limit ?? 100), count);
    return { items: sessions.slice(start, end), next: end < count ? String(end) : null };
  };
  return { client: { sessions: { list } } as unknown as Client, asked };
}

test("returns the wanted number of sessions, and whether there are more", async () => {
  const { client } = clientOf(120);
  const first = await readSessions(client, NO_FILTER, 50, signal);
  expect([first.rows.length, first.more]).toEqual([50, true]);
  const all = await readSessions(client, NO_FILTER, 150, signal);
  expect([all.rows.length, all.more, all.read]).toEqual([120, false, 120]);
});

test("requests no page above the server's limit", async () => {
  const { client, asked } = clientOf(2500);
  expect((await readSessions(client, NO_FILTER, 2100, signal)).rows).toHaveLength(2100);
  expect(asked.map(({ limit }) => limit)).toEqual([1000, 1000, 100]);
});

test("filters by the state of runs on the server", async () => {
  const { client, asked } = clientOf(1);
  for (const show of ["asking", "interrupted", "closed"] as const)
    await readSessions(client, { ...NO_FILTER, show }, 60, signal);
  expect(asked).toEqual([
    { runs: "asking", limit: 60 },
    { runs: "interrupted", limit: 60 },
    { status: "closed", limit: 60 },
  ]);
});

test("sends no request for an invalid pattern", async () => {
  const { client, asked } = clientOf(1);
  await expect(readSessions(client, { ...NO_FILTER, search: "re:(" }, 50, signal)).rejects.toThrow(
    /regular expression/,
  );
  expect(asked).toEqual([]);
});
