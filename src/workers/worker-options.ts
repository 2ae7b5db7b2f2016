import { checkArgument, checkOptionsOf, isObject, type KeysOf } from "../session/check-arguments.ts";
import { type Agent, checkIsAgent } from "../agent/agent.ts";
import { checkLeaseMs, checkPark } from "../agent/check-options.ts";
import type { ParkOptions } from "../agent/loop-options.ts";
import { checkIsModel, type Model } from "../agent/model/model.ts";
import type { Approval } from "../session/log/run-event.ts";
import { checkAskPolicy, type AskPolicy } from "../agent/tools/ask-policy.ts";
import type { GroupSession } from "../group/group-session.ts";
import { SessionManager } from "../lifecycle/session-manager.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";
import { checkCount } from "../stores/complete/valid-arguments.ts";
import { InProcessQueue } from "./in-process-queue.ts";
import type { RunQueue } from "./run-queue.ts";
import type { RunPlace } from "./user-places.ts";

const TIMER_MS_MAX = 2 ** 31 - 1;

/** A run that waits for an answer, and that nobody has meanwhile. */
export interface ParkedRun {
  readonly sessionId: string;
  /** Whose session it is. */
  readonly userId: string | null;
  readonly runId: string;
  readonly questions: readonly Approval[];
}

/** Where to post that a run has parked; what it asks about is not said there, as arguments may hold secrets. */
export interface RunWebhook {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a worker runs, and how. */
export interface WorkerInit {
  readonly manager: SessionManager;
  /** The agents that it runs; each needs a name. Where there is one only, it also takes requests that name none. */
  readonly agents: readonly Agent[];
  /** The groups that it runs, by name; agents and groups share their names. */
  readonly groups?: Readonly<Record<string, GroupSession>>;
  readonly queue: RunQueue;
  /** How many runs it has at once (default 32). */
  readonly concurrency?: number;
  /** How long others wait for its runs when it has died or is frozen (default 30,000 ms, at least 1,000). */
  readonly leaseMs?: number;
  /** When runs let go of their sessions while they wait for a person's word (default: after 30 seconds, until there is an answer). */
  readonly park?: ParkOptions;
  /** How many runs one user has at once, on all workers of a shared store (default 10). */
  readonly maxRunsPerUser?: number;
  /**
   * The most bytes that a user may keep in the logs of their sessions and in the directory that was made for them; runs of
   * whoever has more do not start, and stop after their round (default: any number).
   */
  readonly storedBytesPerUser?: number;
  /** How often it looks for runs that nobody rang for (default 30,000 ms; 0 for never). */
  readonly sweepMs?: number;
  /** What it is called where workers are shown (default: its host and process). */
  readonly name?: string;
  /** The models that can be asked for, beside those of the agents. */
  readonly models?: readonly Model[];
  /** Where the tools of agents act, in sessions that do not say so themselves. Left out, they have no such place. */
  readonly place?: RunPlace;
  /** Which calls run without a person's word, in all runs; of this and an agent's own word, the stricter one holds. */
  readonly ask?: AskPolicy;
  /** Told of each run that parks here, so that somebody can be asked. */
  readonly onParked?: (parked: ParkedRun) => void;
  /** Where that is posted to, too. */
  readonly webhook?: RunWebhook;
  /** Told what goes wrong outside of any run (default: a warning of the process). */
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

/** @throws {SessionError} `INVALID_OPTION` for a worker that could not work. */
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

/** @throws {SessionError} `INVALID_OPTION` that names the call, unless groups, models, the place and the webhook are of their types. */
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

/** @throws {SessionError} `INVALID_OPTION` where others would hear a queue whose runs they cannot be kept from. */
export function checkQueue({ capabilities }: SessionStore, queue: RunQueue): void {
  if (capabilities.lease === "shared" || queue instanceof InProcessQueue) return;
  throw new SessionError(
    "INVALID_OPTION",
    "The leases of this store hold in one process only, so that two machines could run one session: use inProcessQueue(), or a store that is shared.",
  );
}

/** Agents by their names. @throws {SessionError} `INVALID_OPTION` for one without a name, and for a name that is taken. */
export function agentsByName(
  agents: readonly Agent[],
  groups: Readonly<Record<string, GroupSession>> = {},
): ReadonlyMap<string, Agent> {
  const byName = new Map<string, Agent>();
  for (const agent of agents) {
    const { name } = agent;
    if (name === null) throw invalid("An agent that is asked for by name needs one.");
    if (byName.has(name)) throw invalid(`Two agents are named ${show(name)}; give each a name of its own.`);
    if (Object.hasOwn(groups, name)) throw invalid(`An agent and a group are named ${show(name)}; rename one of them.`);
    byName.set(name, agent);
  }
  return byName;
}

/** Models by `provider/id`, those of the agents among them. */
export function modelsById(models: readonly Model[], agents: readonly Agent[]): ReadonlyMap<string, Model> {
  const all = [...models, ...agents.map((agent) => agent.model)];
  return new Map(all.map((model) => [`${model.provider}/${model.id}`, model]));
}

function invalid(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
