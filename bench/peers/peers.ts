import { bareFilePeer } from "./bare-file-peer.ts";
import { bareSqlitePeer } from "./bare-sqlite-peer.ts";
import {
  langgraphBarePeer,
  langgraphDeltaPeer,
  langgraphPeer,
  langgraphSaverPeer,
  skeinSaverPeer,
  skeinSaverAlonePeer,
} from "./langgraph-peer.ts";
import { mastraPeer } from "./mastra-peer.ts";
import { openaiAgentsPeer } from "./openai-agents-peer.ts";
import type { Peer } from "./peer.ts";
import { piPeer } from "./pi-peer.ts";
import { skeinPeer } from "./skein-peer.ts";

/** All peers, the raw limits first. */
export const peers: readonly Peer[] = [
  bareFilePeer,
  bareSqlitePeer,
  skeinPeer("jsonl"),
  skeinPeer("sqlite"),
  piPeer,
  langgraphBarePeer,
  langgraphPeer,
  langgraphDeltaPeer,
  langgraphSaverPeer,
  skeinSaverPeer,
  skeinSaverAlonePeer,
  mastraPeer,
  openaiAgentsPeer,
];
