import { SessionManager } from "../../lifecycle/session-manager.ts";
import { SessionError, show } from "../../session/errors.ts";
import { checkCount } from "../../stores/complete/valid-arguments.ts";
import { inProcessBell } from "../../workers/in-process-bell.ts";
import type { RunBell } from "../../workers/run-bell.ts";
import { type RunWorker, startWorker } from "../../workers/start-worker.ts";
import { openUserPlaces, type RunPlace } from "../../workers/user-places.ts";
import { agentsByName, checkBell, modelsById } from "../../workers/worker-options.ts";
import { WorkerRoster } from "../../workers/worker-roster.ts";
import type { CloseOptions, ServerInit, SkeinServer } from "../create-server.ts";
import { isLoopback } from "../loopback.ts";
import { checkLimits } from "./gate/check-limits.ts";
import { createApp } from "./create-app.ts";
import { Doorkeeper } from "./gate/doorkeeper.ts";
import { Gate } from "./gate/gate.ts";
import { NodeListener } from "./node-listener.ts";
import type { ServerServices } from "./server-services.ts";
import { StudioFiles } from "./studio-files.ts";

const DRAIN_MS_DEFAULT = 10_000;
/** How many runs a server without a fleet has at once. */
const RUNNING_MAX = 1000;

/** A server that is ready to listen. @throws {SessionError} `INVALID_OPTION` for an option that makes no sense. */
export async function startServer(init: ServerInit): Promise<SkeinServer> {
  const { host = "127.0.0.1", port = 0, allowedOrigins = [], logger = null, agents = [], groups = {} } = init;
  const report = (error: unknown): void => logger?.(strayLine(error));
  const door = doorOf(init, report);
  checkHost(host, door.guarded);
  checkCount(port, "port", 0, 65_535);
  const limits = checkLimits(init.limits ?? {}, door.guarded);
  for (const origin of allowedOrigins) checkOrigin(origin);
  const manager = init.manager ?? managerOn(init);
  const place = init.place && { ...init.place, perUser: init.place.perUser ?? door.guarded };
  const studio = await StudioFiles.open(init.studioDirectory ?? null);
  const gate = new Gate({ door, allowedOrigins, rate: limits.rate, urlCharactersMax: limits.urlCharactersMax });
  const drain = new AbortController();
  const models = modelsById(init.models ?? [], agents);
  const bell = bellOf(init, manager);
  const services: ServerServices = {
    manager,
    store: manager.store,
    agents: agentsByName(agents, groups),
    groups: new Map(Object.entries(groups)),
    models: (id) => models.get(id) ?? null,
    modelInfos: [...models].map(([id, { contextWindow }]) => ({ id, contextWindow: contextWindow ?? null })),
    placeOf: await openUserPlaces(place),
    bell,
    roster: new WorkerRoster(bell),
    leftMs: leftMsOf(init),
    drain: drain.signal,
    report,
  };
  const { hono } = createApp({ services, gate, limits, studio, logger });
  const quiet = bell.onError(report);
  await services.roster.start();
  const { maxRunsPerUser } = limits;
  const worker = init.bell === undefined ? await ownWorker(init, services, { place, maxRunsPerUser }) : null;
  const listener = new NodeListener(hono.fetch, { host, port, ...limits });
  const owned = init.manager === undefined ? manager : null;
  owned?.start();
  return new RunningServer({ listener, fetch: hono.fetch, services, worker, drain, owned, quiet });
}

/** What a server that is ready consists of. */
interface ServerParts {
  readonly listener: NodeListener;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly services: ServerServices;
  /** The server's own, where it is no part of a fleet; so is the bell then. */
  readonly worker: RunWorker | null;
  readonly drain: AbortController;
  /** The manager, where it is the server's own. */
  readonly owned: SessionManager | null;
  /** Ends that the server is told what goes wrong with the bell. */
  readonly quiet: () => void;
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
    return this.#parts.fetch(request);
  }

  listen(): Promise<string> {
    return this.#parts.listener.listen();
  }

  close({ drainMs = DRAIN_MS_DEFAULT }: CloseOptions = {}): Promise<void> {
    checkCount(drainMs, "drainMs", 0, 2 ** 31 - 1);
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(drainMs: number): Promise<void> {
    const { listener, services, worker, drain, owned, quiet } = this.#parts;
    const endMs = performance.now() + drainMs;
    const closed = listener.stop();
    drain.abort(new SessionError("ABORTED", "The server is shutting down."));
    await worker?.close({ drainMs });
    await within(closed, Math.max(0, endMs - performance.now()));
    listener.hangUp();
    await closed;
    // A bell that is away keeps no server from closing.
    await services.roster.close().catch(services.report);
    quiet();
    if (worker !== null) await services.bell.close();
    await owned?.[Symbol.asyncDispose]();
  }
}

/** Whether something was done in time. */
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
  if (store === undefined) throw invalid("A server needs a manager or a store.");
  return new SessionManager({ store });
}

/** The bell of a fleet, or one of the server's own. */
function bellOf(init: ServerInit, { store }: SessionManager): RunBell {
  const { bell, limits, unasked, park, onParked, webhook, recoverMs } = init;
  if (bell === undefined) return inProcessBell();
  checkBell(store, bell);
  const forWorkers = { unasked, park, onParked, webhook, recoverMs, maxRunsPerUser: limits?.maxRunsPerUser };
  for (const [name, value] of Object.entries(forWorkers)) {
    if (value !== undefined)
      throw invalid(`With a bell, the workers run what is asked for: give ${name} to startWorker.`);
  }
  return bell;
}

function ownWorker(
  init: ServerInit,
  services: ServerServices,
  { place, maxRunsPerUser }: { readonly place: RunPlace | undefined; readonly maxRunsPerUser: number },
): Promise<RunWorker> {
  const { agents = [], groups, models, unasked, park, recoverMs, webhook, onParked } = init;
  const { manager, bell, report } = services;
  return startWorker({
    manager,
    bell,
    agents,
    maxRunsPerUser,
    concurrency: RUNNING_MAX,
    onError: report,
    ...(groups && { groups }),
    ...(models && { models }),
    ...(place && { place }),
    ...(unasked && { unasked }),
    ...(park && { park }),
    ...(onParked && { onParked }),
    ...(webhook && { webhook }),
    ...(recoverMs === undefined ? {} : { sweepMs: recoverMs }),
  });
}

function doorOf({ tokens, authenticate }: ServerInit, report: (error: unknown) => void): Doorkeeper {
  if (authenticate !== undefined && typeof authenticate !== "function") {
    throw invalid(`authenticate is ${show(authenticate)}; give a function of the request.`);
  }
  return new Doorkeeper({ tokens: tokens ?? null, authenticate: authenticate ?? null, report });
}

function leftMsOf({ cancelWhenLeft }: ServerInit): number | null {
  if (cancelWhenLeft !== undefined) checkCount(cancelWhenLeft.afterMs, "cancelWhenLeft.afterMs", 0, 2 ** 31 - 1);
  return cancelWhenLeft?.afterMs ?? null;
}

function checkHost(host: string, guarded: boolean): void {
  if (guarded || isLoopback(host)) return;
  throw invalid(
    `Without tokens the server listens on 127.0.0.1 only, not on ${show(host)}; give it tokens or authenticate first.`,
  );
}

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return;
  throw invalid(`${show(origin)} is not an origin; give one such as https://studio.example.org.`);
}

function strayLine(error: unknown): Parameters<NonNullable<ServerInit["logger"]>>[0] {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { level: "error", requestId: "none", method: "none", route: "none", status: 500, durationMs: 0, error: text };
}

function invalid(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
