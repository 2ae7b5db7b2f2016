import type { Server } from "@modelcontextprotocol/sdk/server/index.js";

/** A server of many tools: some answer, one never does, and `listed` are offered as they are given. */
export function makeServer(options?: {
  readonly notes?: string;
  readonly listed?: readonly object[];
  readonly perPage?: number;
}): Server;
