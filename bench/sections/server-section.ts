import type { Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import type { BenchServer } from "../servers/bench-server.ts";
import { comparePeers } from "../servers/compare-peers.ts";
import { openPostgresServer } from "../servers/postgres-server.ts";
import { openRedisServer } from "../servers/redis-server.ts";
import { type ServerKind, serverOf } from "../servers/server-kind.ts";
import { appendAtOnce, appendOneByOne, listByUser, measureLength } from "../servers/server-rows.ts";

const openers: Readonly<Record<ServerKind, (url: string) => Promise<BenchServer>>> = {
  postgres: openPostgresServer,
  redis: openRedisServer,
};

/** A store on a server, compared with a bare client of that server, with itself at other sizes, and with peers. */
export function serverSection(kind: ServerKind): Section {
  return {
    name: kind,
    async run(bench) {
      const place = serverOf(kind);
      if ("problem" in place) return [{ section: kind, what: "all of it", measured: `not measured: ${place.problem}` }];
      return [...(await measureStore(bench, kind, place.url)), ...(await comparePeers(bench, kind, place.url))];
    },
  };
}

async function measureStore(bench: Bench, kind: ServerKind, url: string): Promise<Row[]> {
  await using server = await openers[kind](url);
  return [
    ...(await appendOneByOne(bench, server)),
    ...(kind === "postgres" ? await appendWithoutWaiting(bench, url) : []),
    ...(await appendAtOnce(bench, server)),
    ...(await measureLength(bench, server)),
    await listByUser(bench, server),
  ];
}

/**
 * The hardest comparison, as both sides save the time of syncing the disk. No target, as few databases run like this.
 */
async function appendWithoutWaiting(bench: Bench, url: string): Promise<Row[]> {
  await using server = await openPostgresServer(url, { synced: false });
  const rows = await appendOneByOne(bench, server);
  return rows.map(({ target: _target, ...row }) => ({ ...row, what: `${row.what}, commits that wait for no disk` }));
}
