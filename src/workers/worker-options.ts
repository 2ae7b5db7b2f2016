import { type Agent, checkIsAgent } from "../agent/agent.ts";
import { checkLeaseMs, checkPark } from "../agent/check-options.ts";
import type { ParkOptions } from "../agent/loop-options.ts";
import { checkIsModel, type Model } from "../agent/model/model.ts";
import { type AskPolicy, checkAskPolicy } from "../agent/tools/ask-policy.ts";
import type { GroupSession } from "../group/group-session.ts";
import { SessionManager } from "../lifecycle/session-manager.ts";
import { checkArgument, checkOptionsOf, invalidOption, isObject, type KeysOf } from "../session/check-arguments.ts";
import { SessionError, show } from "../session/errors.ts";
import type { Approval } from "../session/log/run-event.ts";
import type { SessionStore } from "../session/store.ts";
import { checkCount } from "../stores/complete/valid-arguments.ts";
import { InProcessQueue } from "./in-process-queue.ts";
import type { RunQueue } from "./run-queue.ts";
import type { RunPlace } from "./user-places.ts";

const TIMER_MS_MAX = 2 ** 31 - 1;

/** A run that waits for an answer and is held by no worker. */
export interface ParkedRun {
  readonly sessionId: string;
  /** The user of the session. */
  readonly userId: string | null;
  readonly runId: string;
  readonly questions: readonly Approval[];
}

/** A URL to which parked runs are posted. The post does not contain the arguments of the calls, which may be secret. */
export interface RunWebhook {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The options of a worker. */
export interface WorkerInit {
  readonly manager: SessionManager;
  /** The agents that it runs; each needs a name. If there is only one, it also takes requests without a name. */
  readonly agents: readonly Agent[];
  /** The groups that it runs, by name; agents and groups share one namespace. */
  readonly groups?: Readonly<Record<string, GroupSession>>;
  readonly queue: RunQueue;
  /** The most concurrent runs (default 32). */
  readonly concurrency?: number;
  /** How long other workers wait for its runs if it dies or freezes (default 30,000 ms, at least 1,000). */
  readonly leaseMs?: number;
  /**
   * When runs release their sessions while they wait for approval (default: after 30 seconds, until there is an
   * answer).
   */
  readonly park?: ParkOptions;
  /** The most concurrent runs of one user, on all workers of a shared store (default 10). */
  readonly maxRunsPerUser?: number;
  /**
   * The most bytes that a user may store in session logs and in the private directory. Beyond that, runs do not start,
   * and running ones stop after their round (default: no limit).
   */
  readonly storedBytesPerUser?: number;
  /** How often it looks for runs without a notification (default 30,000 ms; 0 for never). */
  readonly sweepMs?: number;
  /** The worker's name in listings (default: its host and process id). */
  readonly name?: string;
  /** The models that a request can select, besides those of the agents. */
  readonly models?: readonly Model[];
  /** The sandbox placement for sessions without their own; none by default. */
  readonly place?: RunPlace;
  /** Which calls need approval, in all runs; of this and an agent's own policy, the stricter one applies. */
  readonly ask?: AskPolicy;
  /** Called with each run that parks here, so that the application can ask someone. */
  readonly onParked?: (parked: ParkedRun) => void;
  /** A URL to which parked runs are posted, too. */
  readonly webhook?: RunWebhook;
  /** Called with errors outside any run (default: a process warning). */
  readonly onError?: (error: unknown) => void;
}

const WORKER_KEYS: KeysOf<WorkerInit> = {
  manager: true,
  agents: true,
  groups: true,
  queue: true,
  concurrency: true,
  leaseMs: true,
  park: true,
  maxRunsPerUser: true,
  storedBytesPerUser: true,
  sweepMs: true,
  name: true,
  models: true,
  place: true,
  ask: true,
  onParked: true,
  webhook: true,
  onError: true,
};

function isQueue(queue: unknown): boolean {
  return isObject(queue) && typeof queue.notify === "function" && typeof queue.listen === "function";
}

/** @throws {SessionError} `INVALID_OPTION` for invalid options. */
export function checkWorker(init: WorkerInit): void {
  checkOptionsOf(init, WORKER_KEYS, "startWorker");
  const { manager, queue, concurrency = 1, maxRunsPerUser = 1, sweepMs = 0 } = init;
  checkArgument(manager instanceof SessionManager, manager, "startWorker", "a manager, such as openManager makes");
  checkArgument(isQueue(queue), queue, "startWorker", "a queue, such as inProcessQueue() or bullmqQueue({ url })");
  checkArgument(Array.isArray(init.agents), init.agents, "startWorker", "agents, as a list of what createAgent makes");
  for (const agent of init.agents) checkIsAgent(agent, "startWorker");
  checkOffers(init, "startWorker");
  checkQueue(manager.store, queue);
  checkCount(concurrency, "concurrency", 1);
  checkCount(maxRunsPerUser, "maxRunsPerUser", 1);
  checkCount(sweepMs, "sweepMs", 0, TIMER_MS_MAX);
  checkLeaseMs(init.leaseMs);
  checkPark(init.park);
  checkAskPolicy(init.ask);
}

/**
 * @throws {SessionError} `INVALID_OPTION` that names the call, unless groups, models, place and webhook have the right
 * types.
 */
export function checkOffers(
  { groups, models, place, webhook }: Pick<WorkerInit, "groups" | "models" | "place" | "webhook">,
  call: string,
): void {
  const areGroups = (values: object): boolean => Object.values(values).every((group) => isObject(group));
  checkArgument(groups === undefined || (isObject(groups) && areGroups(groups)), groups, call, "groups by name");
  if (models !== undefined) checkArgument(Array.isArray(models), models, call, "models, as a list");
  for (const model of models ?? []) checkIsModel(model, call);
  checkArgument(place === undefined || isObject(place), place, call, "a place, such as { backend, spec }");
  checkArgument(webhook === undefined || isObject(webhook), webhook, call, "a webhook, such as { url }");
}

/** @throws {SessionError} `INVALID_OPTION` for a shared queue with a store whose leases are valid in one process only. */
export function checkQueue({ capabilities }: SessionStore, queue: RunQueue): void {
  if (capabilities.lease === "shared" || queue instanceof InProcessQueue) return;
  throw new SessionError(
    "INVALID_OPTION",
    "The leases of this store hold in one process only, so that two machines could run one session: use inProcessQueue(), or a store that is shared.",
  );
}

/**
 * Indexes agents by name. @throws {SessionError} `INVALID_OPTION` for an agent without a name, or for a duplicate name.
 */
export function agentsByName(
  agents: readonly Agent[],
  groups: Readonly<Record<string, GroupSession>> = {},
): ReadonlyMap<string, Agent> {
  const byName = new Map<string, Agent>();
  for (const agent of agents) {
    const { name } = agent;
    if (name === null) throw invalidOption("An agent that is asked for by name needs one.");
    if (byName.has(name)) throw invalidOption(`Two agents are named ${show(name)}; give each a name of its own.`);
    if (Object.hasOwn(groups, name))
      throw invalidOption(`An agent and a group are named ${show(name)}; rename one of them.`);
    byName.set(name, agent);
  }
  return byName;
}

/** Indexes models by `provider/id`, including those of the agents. */
export function modelsById(models: readonly Model[], agents: readonly Agent[]): ReadonlyMap<string, Model> {
  const all = [...models, ...agents.map((agent) => agent.model)];
  return new Map(all.map((model) => [`${model.provider}/${model.id}`, model]));
}
