import { formatBytes, formatCount, formatMs } from "../format.ts";
import { installationOf } from "../peers/load-installed.ts";
import type { Row } from "../row.ts";
import { runInChild } from "../run-in-child.ts";
import type { Bench } from "../section.ts";
import type { ServerPeerResult } from "./measure-server-peer.ts";
import type { ServerKind } from "./server-kind.ts";
import type { ServerPeer } from "./server-peer.ts";
import { serverPeers } from "./server-peers.ts";

/** A late turn of a peer may take seconds. */
const ROUNDS_MAX = 3;

/** The cost of a turn at each length of a conversation, for Skein and other libraries on the same server. */
export async function comparePeers(bench: Bench, server: ServerKind, url: string): Promise<Row[]> {
  const rows: Row[] = [];
  for (const peer of serverPeers.filter((each) => each.server === server))
    rows.push(...(await compare(bench, peer, url)));
  return rows;
}

async function compare(bench: Bench, peer: ServerPeer, url: string): Promise<Row[]> {
  const { label, server: section, installation } = peer;
  const { problem, packages } = installation === null ? { problem: null, packages: {} } : installationOf(installation);
  if (installation !== null && !bench.peers) return [{ section, what: label, measured: "left out of this run" }];
  if (problem !== null) return [{ section, what: label, measured: `not installed: ${problem}` }];
  bench.progress(`${section}: ${label}`);
  const { turnsOnServer: turns } = bench.sizes;
  const rounds = Math.min(bench.sizes.turnRounds, ROUNDS_MAX);
  const name = [label, ...Object.values(packages).slice(0, 1)].join(" ");
  try {
    const result = await runInChild("serverPeer", { label, url, turns, rounds });
    if (!("problem" in result)) return rowsOf(section, name, turns, result);
    return [
      { section, what: name, measured: `not measured, as this server refuses it: ${result.problem.split(",")[0]}` },
    ];
  } catch (error) {
    return [{ section, what: name, measured: `failed: ${(error as Error).message}` }];
  }
}

function rowsOf(section: string, label: string, turns: readonly number[], result: ServerPeerResult): Row[] {
  const at = formatCount(turns.at(-1) ?? 0);
  const row = (what: string, values: readonly number[], format: (value: number) => string, ratio: number): Row => ({
    section,
    what: `${label}: ${what} of turn ${at}`,
    measured: format(values.at(-1) ?? Number.NaN),
    against: turns
      .slice(0, -1)
      .map((turn, index) => `${format(values[index] ?? Number.NaN)} at turn ${formatCount(turn)}`)
      .join(", "),
    ratio,
  });
  const [first = Number.NaN, last = Number.NaN] = [result.turnBytes[0], result.turnBytes.at(-1)];
  return [
    row("time", result.turnMs, formatMs, result.timeRatio),
    row("bytes", result.turnBytes, formatBytes, last / first),
  ];
}
