import { type Contender, race } from "../race.ts";
import { medianMs, timeRatio } from "../statistics.ts";
import { openServerBytes } from "./server-bytes.ts";
import type { ServerConversations, ServerPeer } from "./server-peer.ts";
import { serverPeers } from "./server-peers.ts";

/** The cost of a turn at each length. */
export interface ServerPeerResult {
  readonly turnMs: readonly number[];
  /** The last length compared with the first. */
  readonly timeRatio: number;
  readonly turnBytes: readonly number[];
}

export interface ServerPeerInput {
  readonly label: string;
  readonly url: string;
  /** In ascending order. */
  readonly turns: readonly number[];
  readonly rounds: number;
}

const TURNS_EACH_ROUND = 4;
const TURNS_FOR_BYTES = 4;

/** Measures one peer on a server; resolves to the reason if the server does not support it. */
export async function measureServerPeer(input: ServerPeerInput): Promise<ServerPeerResult | { problem: string }> {
  const peer = serverPeers.find(({ label }) => label === input.label);
  if (peer === undefined) throw new Error(`There is no peer called ${input.label}.`);
  try {
    return await measure(peer, input);
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** Conversations of different lengths alternate. */
async function measure(peer: ServerPeer, input: ServerPeerInput): Promise<ServerPeerResult> {
  await using bytes = await openServerBytes(peer.server, input.url);
  await using conversations = await peer.open(input.url);
  const { turnsEachRound = TURNS_EACH_ROUND } = peer;
  const contenders = input.turns.map((turns): [string, Contender] => [
    `at ${turns}`,
    takingTurns(conversations, turns, turnsEachRound),
  ]);
  const samples = Object.values(await race(Object.fromEntries(contenders), { rounds: input.rounds, warmups: 1 }));
  const [first = [], last = []] = [samples[0], samples.at(-1)];
  const turnBytes: number[] = [];
  for (const turns of input.turns) {
    const conversation = await conversations.begin();
    await conversation.fill(turns);
    const before = await bytes.read();
    for (let index = 0; index < TURNS_FOR_BYTES; index++) await conversation.turn(turns + index);
    turnBytes.push(((await bytes.read()) - before) / TURNS_FOR_BYTES);
  }
  return {
    turnMs: samples.map((each) => medianMs(each) / turnsEachRound),
    timeRatio: timeRatio(last, first),
    turnBytes,
  };
}

function takingTurns(conversations: ServerConversations, turns: number, count: number): Contender {
  let conversation: Awaited<ReturnType<ServerConversations["begin"]>>;
  return {
    // A separate conversation for each round, as it would not keep its length otherwise.
    async prepare() {
      conversation = await conversations.begin();
      await conversation.fill(turns);
    },
    async run() {
      for (let index = 0; index < count; index++) await conversation.turn(turns + index);
    },
  };
}
