import { rm } from "node:fs/promises";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import type { ContextResult, Growth, PeerResult } from "../measure-peer.ts";
import { installationOf } from "../peers/load-installed.ts";
import type { Peer } from "../peers/peer.ts";
import { peers } from "../peers/peers.ts";
import type { Row } from "../row.ts";
import { runInChild } from "../run-in-child.ts";
import type { Bench, Section } from "../section.ts";

const section = "peers";

/**
 * The cost of a turn in a long conversation compared with a short one, for Skein, other libraries and the raw limit.
 */
export const peersSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const peer of peers) rows.push(...(await measure(bench, peer)));
    return rows;
  },
};

async function measure(bench: Bench, peer: Peer): Promise<Row[]> {
  const { installation } = peer;
  const { problem, packages } = installation === null ? { problem: null, packages: {} } : installationOf(installation);
  if (installation !== null && !bench.peers) return [{ section, what: peer.label, measured: "left out of this run" }];
  if (problem !== null) return [{ section, what: peer.label, measured: `not installed: ${problem}` }];
  bench.progress(`peers: ${peer.label}`);
  try {
    const label = [peer.label, ...Object.values(packages).slice(0, 1)].join(" ");
    return rowsOf(bench, { ...peer, label }, await runPeer(bench, peer));
  } catch (error) {
    return [{ section, what: peer.label, measured: `failed: ${(error as Error).message}` }];
  }
}

async function runPeer(bench: Bench, { label }: Peer): Promise<PeerResult> {
  const { turnsSmall, turnsLarge, turnRounds, entriesKept } = bench.sizes;
  const folder = await bench.fixtures.folder("peer");
  const input = { label, folder, turnsSmall, turnsLarge, rounds: turnRounds, messagesKept: entriesKept };
  try {
    return await runInChild("peer", input);
  } finally {
    // Deleted right away, as one peer writes gigabytes.
    await rm(folder, { recursive: true, force: true });
  }
}

function rowsOf(bench: Bench, { label, context = "all of it" }: Peer, result: PeerResult): Row[] {
  const { turnsSmall, turnsLarge } = bench.sizes;
  const at = formatCount(turnsLarge);
  const row = (what: string, growth: Growth, format: (value: number) => string): Row => ({
    section,
    what: `${label}: ${what}`,
    measured: format(growth.large),
    against: `${format(growth.small)} at turn ${formatCount(turnsSmall)}`,
    ratio: growth.ratio,
  });
  const contextRow = (what: string, read: ContextResult): Row =>
    row(`open + context at turn ${at}, ${what} (${formatCount(read.messages)} messages)`, read, formatMs);
  return [
    row(`time of turn ${at}`, result.turnMs, formatMs),
    row(`bytes of turn ${at}`, result.turnBytes, formatBytes),
    contextRow(context, result.context),
    ...(result.contextKept === null ? [] : [contextRow("after a compaction", result.contextKept)]),
  ];
}
