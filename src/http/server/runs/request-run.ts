import { outputSchema } from "../../../agent/output/run-output.ts";
import { findSchemaProblem } from "../../../agent/schema/json-schema-definition.ts";
import type { JsonObject } from "../../../internal/json.ts";
import { checkUnnamed } from "../../../lifecycle/runs/recover-run.ts";
import type { RequestedRun } from "../../../lifecycle/runs/managed-runs.ts";
import { statusError } from "../../../session/log/append-guard.ts";
import { show } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import { requestIdOf } from "../../../session/log/open-runs.ts";
import type { SessionStore } from "../../../session/store.ts";
import type { RunRequest } from "../../run-wire.ts";
import { HttpError } from "../http-error.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { visibleHead } from "../routes/session-access.ts";

/** How long the number of waiting runs is cached. */
const COUNTED_MS = 250;

/** A request for a run; only the chat routes can set where it continues from. */
export type AskedRun = RunRequest & { readonly from?: string | null };

/**
 * Requests a run for a caller and notifies the workers; returns it with the session's head. A repeated request returns the same run. A
 * refused request has no effect.
 */
export async function requestRun(
  services: ServerServices,
  backlog: Backlog,
  { sessionId, request, caller }: { sessionId: string; request: AskedRun; caller: Caller },
): Promise<RequestedRun> {
  const { manager, store, queue, drain, report } = services;
  const head = await visibleHead(services, sessionId, caller);
  const entry = request.runId === undefined ? null : await store.getEntry(sessionId, requestIdOf(request.runId));
  const earlier = entry?.type === "run_request" ? entry : null;
  const who = selectRunner(services, request, earlier?.agent ?? null);
  if (earlier === null) {
    if (drain.aborted) throw draining();
    if (head.status !== "active") throw statusError(sessionId, head.status);
    const unnamed = services.agents.get(who.agent ?? "")?.model.unnamed === true;
    if (unnamed && request.model === undefined) await checkUnnamed(store, head);
    await backlog.check();
  }
  const { agent: _agent, output, ...rest } = request;
  if (output !== undefined) checkPatterns(output);
  const options = output === undefined ? {} : { options: { output } };
  const requested = await manager.request(sessionId, { ...rest, ...options, ...who }, { actor: caller, head });
  const runner = who.agent ?? request.group ?? "";
  // The request is recorded: if the notification fails, the next sweep finds the run.
  await queue.notify(sessionId, { runner, priority: await backlog.priorityOf(head) }).catch(report);
  return requested;
}

/**
 * @throws {HttpError} `INVALID_REQUEST` for a schema with a pattern: an untrusted pattern can backtrack for hours and
 * block a worker.
 */
function checkPatterns(output: JsonObject): void {
  const problem = findSchemaProblem(outputSchema(output), { name: "output", patterns: false });
  if (problem !== null) throw new HttpError("INVALID_REQUEST", `The schema of the output is refused: ${problem}.`);
}

/** The waiting runs, as recorded in the log. */
export class Backlog {
  readonly #store: SessionStore;
  readonly #max: number;
  #countedMs = Number.NEGATIVE_INFINITY;
  #waiting = 0;

  constructor(store: SessionStore, max: number) {
    this.#store = store;
    this.#max = max;
  }

  /** @throws {HttpError} `OVERLOADED` if the maximum number of runs is waiting. */
  async check(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - this.#countedMs > COUNTED_MS) {
      this.#countedMs = nowMs;
      this.#waiting = await this.#store.count({ dueBefore: new Date().toISOString() });
    }
    if (this.#waiting >= this.#max) {
      throw new HttpError("OVERLOADED", `${this.#max} runs wait to begin already; try again later.`, {
        headers: { "retry-after": "5" },
      });
    }
    this.#waiting += 1;
  }

  /** The priority of a run: runs of a user with many waiting runs come later. */
  priorityOf({ header: { userId } }: SessionHead): Promise<number> {
    return this.#store.count({ runs: "requested", ...(userId === null ? {} : { userId }) });
  }
}

/** The session, if the caller may write to it. @throws {SessionError} that names its status. */
export async function writableHead(services: ServerServices, sessionId: string, caller: Caller): Promise<SessionHead> {
  const head = await visibleHead(services, sessionId, caller);
  if (head.status !== "active") throw statusError(sessionId, head.status);
  return head;
}

/** The error for requests during shutdown. */
export function draining(): HttpError {
  return new HttpError("DRAINING", "The server is shutting down; try again later.");
}

/** Checks that the server or a worker has the agent. @throws {HttpError} `AGENT_NOT_FOUND` otherwise. */
export function checkAgent({ agents, roster }: ServerServices, name: string | null): string {
  if (name !== null && (agents.has(name) || roster.workers.some((worker) => worker.agents.includes(name)))) return name;
  throw new HttpError("AGENT_NOT_FOUND", `The server has no agent ${name === null ? "at all" : show(name)}.`);
}

/**
 * The name of the agent or group that must answer: the requested one, the one that answered before, or the first agent.
 */
function selectRunner(
  services: ServerServices,
  { agent, group, model }: RunRequest,
  before: string | null,
): { readonly agent?: string } {
  const { groups, models, roster } = services;
  if (model !== undefined && models(model) === null) {
    throw new HttpError("MODEL_NOT_FOUND", `The server has no model ${show(model)}.`);
  }
  if (group === undefined) {
    const [first = null] = services.agents.keys();
    return { agent: checkAgent(services, agent ?? before ?? first) };
  }
  if (agent !== undefined || model !== undefined) {
    throw new HttpError("INVALID_REQUEST", "A group answers with its own agents and models; leave those out.");
  }
  if (groups.has(group) || roster.workers.some((worker) => worker.groups.includes(group))) return {};
  throw new HttpError("GROUP_NOT_FOUND", `The server has no group ${show(group)}.`);
}
