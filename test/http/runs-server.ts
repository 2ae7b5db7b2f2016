import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { onTestFinished } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import type { Model } from "../../src/agent/model/model.ts";
import type { AskPolicy } from "../../src/agent/tools/ask-policy.ts";
import type { GroupSession } from "../../src/group/group-session.ts";
import { type Client, createClient, type RunView, type WireRunEvent } from "../../src/http/client/index.ts";
import { createServer, type ServerInit, type ServerLogLine, type SkeinServer } from "../../src/http/index.ts";
import type { RunPlace } from "../../src/workers/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { textOf } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { TOKENS, tokenOf } from "./server-support.ts";

/** The agents and models for runs in a test. */
export interface Offer {
  readonly agents?: Readonly<Record<string, Agent>>;
  readonly groups?: (manager: SessionManager) => Readonly<Record<string, GroupSession>>;
  readonly models?: readonly Model[];
  readonly store?: SessionStore;
  readonly place?: RunPlace;
  readonly ask?: AskPolicy;
  /** Further options of the server. */
  readonly init?: Partial<ServerInit>;
}

/** A server of runs, and a session of ann in it unless the store was there before. */
export interface RunServer {
  readonly server: SkeinServer;
  readonly url: string;
  readonly sessionId: string;
  readonly store: SessionStore;
  readonly manager: SessionManager;
  readonly log: readonly ServerLogLine[];
  /** Sends requests as `ann`, `bob` or `root`, who is an administrator. */
  as(userId: string): Client;
  readonly client: Client;
}

/** Serves on a free port until the test ends. */
export async function openRunServer(offer: Offer = {}): Promise<RunServer> {
  const store = offer.store ?? openMemoryStore();
  const manager = new SessionManager({ store });
  const log: ServerLogLine[] = [];
  const server = await createServer({
    manager,
    agents: Object.entries(offer.agents ?? {}).map(([name, agent]) => ({ ...agent, name })),
    groups: offer.groups?.(manager) ?? {},
    models: offer.models ?? [],
    ...(offer.place === undefined ? {} : { place: offer.place }),
    ...(offer.ask && { ask: offer.ask }),
    tokens: TOKENS,
    limits: { rate: null },
    logger: (line) => log.push(line),
    ...offer.init,
  });
  const url = await server.listen();
  onTestFinished(() => server.close({ drainMs: 0 }));
  const sessionId = offer.store === undefined ? (await manager.create({ userId: "ann" })).sessionId : "";
  const as = (userId: string): Client => createClient({ url, token: tokenOf(userId) });
  return { server, url, sessionId, store, manager, log, as, client: as("ann") };
}

/** The headers with which ann sends a request. */
export const ANN: Readonly<Record<string, string>> = { authorization: `Bearer ${tokenOf("ann")}` };

/** The address of an application that is served until the test ends. */
export async function listen(app: { fetch(request: Request): Response | Promise<Response> }): Promise<string> {
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server;
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A run, as a view of it names it. */
export type RunName = Pick<RunView, "sessionId" | "runId">;

/** Resolves with the first event of a type, and leaves then. */
export async function nextOf<T extends WireRunEvent["type"]>(
  client: Client,
  { sessionId, runId }: RunName,
  type: T,
): Promise<Extract<WireRunEvent, { type: T }>> {
  for await (const event of client.runs.events(sessionId, runId)) {
    if (event.type === type) return event as Extract<WireRunEvent, { type: T }>;
  }
  throw new Error(`The run ended without ${type}.`);
}

/** All events of a run. */
export async function allOf(client: Client, { sessionId, runId }: RunName): Promise<WireRunEvent[]> {
  const events: WireRunEvent[] = [];
  for await (const event of client.runs.events(sessionId, runId)) events.push(event);
  return events;
}

/** The events of a run that are derived from its log, and so sent by every server at any time. */
export function lasting(events: readonly WireRunEvent[]): WireRunEvent[] {
  return events.filter(({ type }) => LASTING.test(type));
}

const LASTING =
  /^(?:run-(?:started|parked|finished|failed)|round-finished|tool-finished|approval-required|compaction)$/;

/** The entries of a log in a short form: `user: hi`, and how runs began and ended. */
export async function logOf(store: SessionStore, sessionId: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const entry of store.read(sessionId)) lines.push(...lineOf(entry));
  return lines;
}

function lineOf(entry: Entry): string[] {
  if (entry.type === "run") return [entry.phase];
  if (entry.type !== "message") return [];
  const { role, content } = entry.message;
  const calls =
    entry.message.role === "assistant" ? (entry.message.toolCalls ?? []).map(({ name }) => `[${name}]`) : [];
  return [`${role}: ${[textOf(content), ...calls].join("")}`];
}
