import { checkIsAgent, prepareModels } from "../../agent/agent.ts";
import {
  checkArgument,
  checkOptionsOf,
  checkStoreArgument,
  isObject,
  type KeysOf,
} from "../../session/check-arguments.ts";
import { UNLIMITED_SESSIONS } from "../../lifecycle/session-config.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { SessionError, show } from "../../session/errors.ts";
import { checkCount } from "../../stores/complete/valid-arguments.ts";
import { inProcessQueue } from "../../workers/in-process-queue.ts";
import type { RunQueue } from "../../workers/run-queue.ts";
import { type RunWorker, startWorkerOn } from "../../workers/start-worker.ts";
import { openUserPlaces, ownDirectoryOf, type RunPlace } from "../../workers/user-places.ts";
import { UserStorage } from "../../workers/user-storage.ts";
import { agentsByName, checkOffers, checkQueue, modelsById } from "../../workers/worker-options.ts";
import { WorkerRoster } from "../../workers/worker-roster.ts";
import type { ProgramImports } from "../../interop/formats/program-imports.ts";
import type { ApiToken } from "../api-token.ts";
import type { CloseOptions, ServerInit, SkeinServer } from "../create-server.ts";
import { isLoopback } from "../loopback.ts";
import { checkServerLimits } from "./gate/check-server-limits.ts";
import { createApp } from "./create-app.ts";
import { Authenticator } from "./gate/authenticator.ts";
import { Gate } from "./gate/gate.ts";
import { NodeListener } from "./node-listener.ts";
import type { ServerServices } from "./server-services.ts";
import { StudioFiles } from "./studio-files.ts";

const DRAIN_MS_DEFAULT = 10_000;
/** How many runs a server without a fleet runs concurrently. */
const RUNNING_MAX = 1000;

const SERVER_KEYS: KeysOf<ServerInit> = {
  manager: true,
  store: true,
  queue: true,
  agents: true,
  groups: true,
  models: true,
  place: true,
  ask: true,
  park: true,
  onParked: true,
  webhook: true,
  recoverMs: true,
  cancelWhenLeft: true,
  tokens: true,
  authenticate: true,
  host: true,
  port: true,
  limits: true,
  allowedOrigins: true,
  studioDirectory: true,
  logger: true,
};

function checkServerInit(init: ServerInit): void {
  checkOptionsOf(init, SERVER_KEYS, "createServer");
  const { agents = [], allowedOrigins = [], manager, store } = init;
  checkArgument(Array.isArray(agents), agents, "createServer", "agents, as a list of results of createAgent");
  for (const agent of agents) checkIsAgent(agent, "createServer");
  checkOffers(init, "createServer");
  checkArgument(Array.isArray(allowedOrigins), allowedOrigins, "createServer", "allowedOrigins, as a list of origins");
  const managed = manager === undefined || manager instanceof SessionManager;
  checkArgument(managed, manager, "createServer", "a manager, such as openManager makes");
  if (store !== undefined) checkStoreArgument(store, "createServer");
}

/**
 * Creates a server that is ready to listen. With `programs`, it offers to import the sessions of other programs on this machine.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid option, and for `programs` on a server that is not for one person.
 */
export async function startServer(init: ServerInit, programs: ProgramImports | null = null): Promise<SkeinServer> {
  checkServerInit(init);
  const { host = "127.0.0.1", port = 0, allowedOrigins = [], logger = null, agents = [], groups = {} } = init;
  const report = (error: unknown): void => logger?.(errorLine(error));
  const authenticator = authenticatorOf(init, report);
  checkHost(host, authenticator.guarded);
  if (programs !== null) checkIsPersonal(init, host);
  checkCount(port, "port", 0, 65_535);
  const limits = checkServerLimits(init.limits ?? {}, authenticator.guarded);
  for (const origin of allowedOrigins) checkOrigin(origin);
  const manager = init.manager ?? managerOn(init);
  const place = init.place && { ...init.place, perUser: init.place.perUser ?? authenticator.guarded };
  const studio = await StudioFiles.open(init.studioDirectory ?? null);
  const gate = new Gate({
    authenticator,
    allowedOrigins,
    rate: limits.rate,
    urlCharactersMax: limits.urlCharactersMax,
  });
  if (init.queue === undefined) await prepareModels(agents);
  const drain = new AbortController();
  const models = modelsById(init.models ?? [], agents);
  const queue = queueOf(init, manager);
  const placeOf = await openUserPlaces(place);
  const services: ServerServices = {
    manager,
    store: manager.store,
    agents: agentsByName(agents, groups),
    groups: new Map(Object.entries(groups)),
    models: (id) => models.get(id) ?? null,
    modelInfos: [...models].map(([id, { contextWindow }]) => ({ id, contextWindow: contextWindow ?? null })),
    placeOf,
    storage: new UserStorage({
      store: manager.store,
      limits: { sessions: limits.storedSessionsPerUser, bytes: limits.storedBytesPerUser },
      directoryOf: (userId) => ownDirectoryOf(placeOf(userId), userId),
    }),
    queue,
    roster: new WorkerRoster(queue),
    cancelWhenLeftMs: cancelWhenLeftMsOf(init),
    programs,
    drain: drain.signal,
    report,
  };
  const { hono } = createApp({ services, gate, limits, studio, logger });
  const unsubscribe = queue.onError(report);
  await services.roster.start();
  const { maxRunsPerUser } = limits;
  const worker = init.queue === undefined ? await ownWorker(init, services, { place, maxRunsPerUser }) : null;
  const listener = new NodeListener(hono.fetch, { host, port, ...limits });
  const owned = init.manager === undefined ? manager : null;
  owned?.start();
  return new RunningServer({ listener, fetch: hono.fetch, services, worker, drain, owned, unsubscribe });
}

/** The parts of a server. */
interface ServerParts {
  readonly listener: NodeListener;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly services: ServerServices;
  /** The server's own worker and queue, unless it is part of a fleet; else null. */
  readonly worker: RunWorker | null;
  readonly drain: AbortController;
  /** The manager, if the server has created it; else null. */
  readonly owned: SessionManager | null;
  /** Unsubscribes from errors of the queue. */
  readonly unsubscribe: () => void;
}

class RunningServer implements SkeinServer {
  readonly #parts: ServerParts;
  #closing: Promise<void> | null = null;

  constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  get url(): string {
    return this.#parts.listener.url;
  }

  async fetch(request: Request): Promise<Response> {
    const isRequest = isObject(request) && typeof request.url === "string" && typeof request.method === "string";
    checkArgument(isRequest, request, "fetch", "a Request");
    return this.#parts.fetch(request);
  }

  listen(): Promise<string> {
    return this.#parts.listener.listen();
  }

  close(options: CloseOptions = {}): Promise<void> {
    checkOptionsOf(options, { drainMs: true } satisfies KeysOf<CloseOptions>, "close");
    const { drainMs = DRAIN_MS_DEFAULT } = options;
    checkCount(drainMs, "drainMs", 0, 2 ** 31 - 1);
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(drainMs: number): Promise<void> {
    const { listener, services, worker, drain, owned, unsubscribe } = this.#parts;
    const endMs = performance.now() + drainMs;
    const closed = listener.stop();
    drain.abort(new SessionError("ABORTED", "The server is shutting down."));
    await worker?.close({ drainMs });
    await within(closed, Math.max(0, endMs - performance.now()));
    listener.hangUp();
    await closed;
    // An unavailable queue does not keep the server from closing.
    await services.roster.close().catch(services.report);
    unsubscribe();
    if (worker !== null) await services.queue.close();
    await owned?.[Symbol.asyncDispose]();
  }
}

/** Whether a promise resolved in time. */
async function within(work: Promise<void>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  const done = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return done;
}

function managerOn({ store }: ServerInit): SessionManager {
  if (store === undefined) throw invalidServerOption("A server needs a manager or a store.");
  return new SessionManager({ store, config: UNLIMITED_SESSIONS });
}

/** The queue of a fleet, or an in-process queue. */
function queueOf(init: ServerInit, { store }: SessionManager): RunQueue {
  const { queue, limits, ask, park, onParked, webhook, recoverMs } = init;
  if (queue === undefined) return inProcessQueue();
  checkQueue(store, queue);
  const forWorkers = { ask, park, onParked, webhook, recoverMs, maxRunsPerUser: limits?.maxRunsPerUser };
  for (const [name, value] of Object.entries(forWorkers)) {
    if (value !== undefined)
      throw invalidServerOption(`With a queue, the workers run the requests: give ${name} to startWorker.`);
  }
  return queue;
}

function ownWorker(
  init: ServerInit,
  services: ServerServices,
  { place, maxRunsPerUser }: { readonly place: RunPlace | undefined; readonly maxRunsPerUser: number },
): Promise<RunWorker> {
  const { agents = [], groups, models, ask, park, recoverMs, webhook, onParked } = init;
  const { manager, queue, report, storage } = services;
  const worker = {
    manager,
    queue,
    agents,
    maxRunsPerUser,
    concurrency: RUNNING_MAX,
    onError: report,
    ...(groups && { groups }),
    ...(models && { models }),
    ...(place && { place }),
    ...(ask && { ask }),
    ...(park && { park }),
    ...(onParked && { onParked }),
    ...(webhook && { webhook }),
    ...(recoverMs === undefined ? {} : { sweepMs: recoverMs }),
  };
  return startWorkerOn(worker, storage);
}

function authenticatorOf({ tokens, authenticate }: ServerInit, report: (error: unknown) => void): Authenticator {
  if (authenticate !== undefined && typeof authenticate !== "function") {
    throw invalidServerOption(`authenticate is ${show(authenticate)}; give a function of the request.`);
  }
  return new Authenticator({ tokens: tokens ?? null, authenticate: authenticate ?? null, report });
}

function cancelWhenLeftMsOf({ cancelWhenLeft }: ServerInit): number | null {
  if (cancelWhenLeft !== undefined) checkCount(cancelWhenLeft.afterMs, "cancelWhenLeft.afterMs", 0, 2 ** 31 - 1);
  return cancelWhenLeft?.afterMs ?? null;
}

function checkHost(host: string, guarded: boolean): void {
  if (guarded || isLoopback(host)) return;
  throw invalidServerOption(
    `Without tokens the server listens on 127.0.0.1 only, not on ${show(host)}; give it tokens or authenticate first.`,
  );
}

/** Sessions of the account that runs the server must never be imported for somebody else. */
function checkIsPersonal({ tokens, authenticate }: ServerInit, host: string): void {
  const only = Array.isArray(tokens) && tokens.length === 1 ? (tokens[0] as ApiToken) : null;
  if (only?.admin === true && authenticate === undefined && isLoopback(host)) return;
  throw invalidServerOption(
    "A server with programs is for one person: give it one token of an administrator, no authenticate, and a loopback address.",
  );
}

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return;
  throw invalidServerOption(`${show(origin)} is not an origin; give one such as https://studio.example.org.`);
}

function errorLine(error: unknown): Parameters<NonNullable<ServerInit["logger"]>>[0] {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { level: "error", requestId: "none", method: "none", route: "none", status: 500, durationMs: 0, error: text };
}

function invalidServerOption(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
