import type { Agent } from "../../agent/agent.ts";
import type { Model } from "../../agent/model/model.ts";
import { checkUnasked } from "../../agent/tools/unasked.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { SessionError, show } from "../../session/errors.ts";
import { checkCount } from "../../stores/complete/valid-arguments.ts";
import type { CloseOptions, ServerInit, SkeinServer } from "../create-server.ts";
import { isLoopback } from "../loopback.ts";
import { checkLimits } from "./check-limits.ts";
import { createApp } from "./create-app.ts";
import { Doorkeeper } from "./doorkeeper.ts";
import { Gate } from "./gate.ts";
import { NodeListener } from "./node-listener.ts";
import type { ServerRuns, ServerServices } from "./server-services.ts";
import { postParked } from "./runs/post-parked.ts";
import { StudioFiles } from "./studio-files.ts";
import { openUserPlaces } from "./user-places.ts";

const DRAIN_MS_DEFAULT = 10_000;
const PARK_AFTER_MS = 30_000;
const RECOVER_MS = 30_000;
/** How long aborted runs may take to put their end on record. */
const ABORT_MS = 5000;

/** A server that is ready to listen. @throws {SessionError} `INVALID_OPTION` for an option that makes no sense. */
export async function startServer(init: ServerInit): Promise<SkeinServer> {
  const { host = "127.0.0.1", port = 0, allowedOrigins = [], logger = null, recoverMs = RECOVER_MS } = init;
  const report = (error: unknown): void => logger?.(strayLine(error));
  const door = doorOf(init, report);
  checkHost(host, door.guarded);
  checkCount(port, "port", 0, 65_535);
  checkCount(recoverMs, "recoverMs", 0, 2 ** 31 - 1);
  const limits = checkLimits(init.limits ?? {}, door.guarded);
  checkUnasked(init.unasked);
  for (const origin of allowedOrigins) checkOrigin(origin);
  const manager = init.manager ?? managerOn(init);
  const studio = await StudioFiles.open(init.studioDirectory ?? null);
  const gate = new Gate({ door, allowedOrigins, rate: limits.rate, urlCharactersMax: limits.urlCharactersMax });
  const drain = new AbortController();
  let runsHere: ServerRuns | null = null;
  const services: ServerServices = {
    manager,
    store: manager.store,
    agents: agentsByName(init.agents ?? []),
    groups: new Map(Object.entries(init.groups ?? {})),
    ...modelsOf(init),
    placeOf: await openUserPlaces(init.place, door.guarded),
    unasked: init.unasked,
    park: init.park ?? { afterMs: PARK_AFTER_MS },
    onParked: parkedBy(init, report),
    recoverMs,
    drain: drain.signal,
    isRunHere: (runId) => runsHere?.has(runId) ?? false,
    report,
  };
  const { app, runs } = createApp({ services, gate, limits, studio, logger });
  runsHere = runs;
  const listener = new NodeListener(app.hono.fetch, { host, port, ...limits });
  const owned = init.manager === undefined ? manager : null;
  owned?.start();
  return new RunningServer({ listener, fetch: app.hono.fetch, runs, drain, owned });
}

/** What a server that is ready consists of. */
interface ServerParts {
  readonly listener: NodeListener;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly runs: ServerRuns;
  readonly drain: AbortController;
  /** The manager, where it is the server's own. */
  readonly owned: SessionManager | null;
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
    const { listener, runs, drain, owned } = this.#parts;
    const endMs = performance.now() + drainMs;
    const closed = listener.stop();
    drain.abort(new SessionError("ABORTED", "The server is shutting down."));
    if (!(await within(runs.idle(), drainMs))) {
      runs.abortAll();
      await within(runs.idle(), ABORT_MS);
    }
    await within(closed, Math.max(0, endMs - performance.now()));
    listener.hangUp();
    await closed;
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

/** Tells whoever wants to know that a run has parked; what goes wrong there is reported. */
function parkedBy({ onParked, webhook }: ServerInit, report: (error: unknown) => void): ServerServices["onParked"] {
  const post = webhook === undefined ? null : postParked(webhook, report);
  return (parked) => {
    post?.(parked);
    try {
      onParked?.(parked);
    } catch (error) {
      report(error);
    }
  };
}

function doorOf({ tokens, authenticate }: ServerInit, report: (error: unknown) => void): Doorkeeper {
  if (authenticate !== undefined && typeof authenticate !== "function") {
    throw invalid(`authenticate is ${show(authenticate)}; give a function of the request.`);
  }
  return new Doorkeeper({ tokens: tokens ?? null, authenticate: authenticate ?? null, report });
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

function agentsByName(agents: readonly Agent[]): ReadonlyMap<string, Agent> {
  const byName = new Map<string, Agent>();
  for (const agent of agents) {
    const { name } = agent;
    if (name === null) throw invalid("An agent of a server needs a name.");
    if (byName.has(name)) throw invalid(`Two agents are named ${show(name)}; give each a name of its own.`);
    byName.set(name, agent);
  }
  return byName;
}

function modelsOf({ models = [], agents = [] }: ServerInit): Pick<ServerServices, "models" | "modelInfos"> {
  const byId = new Map<string, Model>();
  for (const model of [...models, ...agents.map((agent) => agent.model)])
    byId.set(`${model.provider}/${model.id}`, model);
  const modelInfos = [...byId].map(([id, { contextWindow }]) => ({ id, contextWindow: contextWindow ?? null }));
  return { models: (id) => byId.get(id) ?? null, modelInfos };
}

function strayLine(error: unknown): Parameters<NonNullable<ServerInit["logger"]>>[0] {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { level: "error", requestId: "none", method: "none", route: "none", status: 500, durationMs: 0, error: text };
}

function invalid(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
