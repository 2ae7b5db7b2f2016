import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Conversation, Peer } from "./peers/peer.ts";
import { peers } from "./peers/peers.ts";
import { type Contender, race, type Sample } from "./race.ts";
import { medianMs, timeRatio, writtenBytes } from "./statistics.ts";

/** One quantity at both lengths of the conversation, and its growth. */
export interface Growth {
  readonly small: number;
  readonly large: number;
  readonly ratio: number;
}

/** The cost of a turn of a peer, and of the context for the next one. */
export interface PeerResult {
  readonly turnMs: Growth;
  readonly turnBytes: Growth;
  readonly context: ContextResult;
  /** The measurement after a compaction, if the peer supports compaction. */
  readonly contextKept: ContextResult | null;
}

export interface ContextResult extends Growth {
  /** The number of messages read from the long conversation. */
  readonly messages: number;
}

export interface PeerInput {
  readonly label: string;
  readonly folder: string;
  readonly turnsSmall: number;
  readonly turnsLarge: number;
  readonly rounds: number;
  /** The number of messages that the compaction keeps. */
  readonly messagesKept: number;
}

const CONTEXT_ROUNDS_MAX = 5;

/** Measures one peer; a short and a long conversation alternate. */
export async function measurePeer(input: PeerInput): Promise<PeerResult> {
  const peer = peers.find(({ label }) => label === input.label);
  if (peer === undefined) throw new Error(`There is no peer called ${input.label}.`);
  const large = await begin(peer, join(input.folder, "large"), input.turnsLarge);
  let small = large;
  const { turnsEachRound } = peer;
  const shortConversation: Contender = {
    // A separate conversation for each round, as it would not stay short otherwise.
    async prepare(round) {
      if (small !== large) await small.close();
      small = await begin(peer, join(input.folder, `small${round}`), input.turnsSmall);
    },
    run: () => takeTurns(small, turnsEachRound.small),
    warmUp: async () => small.warmUp?.(),
    settle: async () => small.settle?.(),
  };
  const longConversation: Contender = {
    run: () => takeTurns(large, turnsEachRound.large),
    warmUp: async () => large.warmUp?.(),
    settle: async () => large.settle?.(),
  };
  const samples = await race(
    { small: shortConversation, large: longConversation },
    { rounds: input.rounds, warmups: 1, collects: true },
  );
  await small.close();
  await large.close();
  const context = await raceContexts(input, small, large);
  await small.compact?.(Math.min(input.messagesKept, input.turnsSmall));
  await large.compact?.(input.messagesKept);
  return {
    turnMs: growthOf(medianMs(samples.small), medianMs(samples.large), timeRatio(samples.large, samples.small), peer),
    turnBytes: bytesOf(samples, peer),
    context,
    contextKept: large.compact === undefined ? null : await raceContexts(input, small, large),
  };
}

async function begin(peer: Peer, folder: string, turns: number): Promise<Conversation> {
  await mkdir(folder, { recursive: true });
  const conversation = await peer.open(folder);
  await conversation.fill(turns);
  return conversation;
}

async function takeTurns(conversation: Conversation, turns: number): Promise<void> {
  for (let index = 0; index < turns; index++) await conversation.turn(index);
}

async function raceContexts(input: PeerInput, small: Conversation, large: Conversation): Promise<ContextResult> {
  let messages = 0;
  const samples = await race(
    {
      small: { run: async () => void (await small.readContext()) },
      large: {
        async run() {
          messages = await large.readContext();
        },
      },
    },
    { rounds: Math.min(input.rounds, CONTEXT_ROUNDS_MAX), warmups: 1, collects: true },
  );
  return {
    small: medianMs(samples.small),
    large: medianMs(samples.large),
    ratio: timeRatio(samples.large, samples.small),
    messages,
  };
}

/** The cost of one turn, from the cost of a round. */
function growthOf(small: number, large: number, ratio: number, { turnsEachRound }: Peer): Growth {
  return {
    small: small / turnsEachRound.small,
    large: large / turnsEachRound.large,
    ratio: (ratio * turnsEachRound.small) / turnsEachRound.large,
  };
}

function bytesOf(
  samples: { readonly small: readonly Sample[]; readonly large: readonly Sample[] },
  peer: Peer,
): Growth {
  const small = writtenBytes(samples.small) / samples.small.length;
  const large = writtenBytes(samples.large) / samples.large.length;
  return growthOf(small, large, large / small, peer);
}
