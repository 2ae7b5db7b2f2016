import { statusError } from "../../../session/append-guard.ts";
import { show } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/fold.ts";
import { requestIdOf } from "../../../session/open-runs.ts";
import type { RunRequest } from "../../run-wire.ts";
import { HttpError } from "../http-error.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { visibleHead } from "../session-access.ts";
import type { RunHost } from "./run-host.ts";

/**
 * Asks for a run on a caller's behalf, and takes it up here if nobody has its session; its id. The same request again is the
 * same run, whatever holds by now. One that is refused has changed nothing.
 */
export async function requestRun(
  services: ServerServices,
  host: RunHost,
  { sessionId, request, caller }: { sessionId: string; request: RunRequest; caller: Caller },
): Promise<string> {
  const { manager, store, drain, report } = services;
  const { ifBusy = "reject" } = request;
  const head = await visibleHead(services, sessionId, caller);
  const entry = request.runId === undefined ? null : await store.getEntry(sessionId, requestIdOf(request.runId));
  const earlier = entry?.type === "run_request" ? entry : null;
  const who = whoIsAsked(services, request, earlier?.agent ?? null);
  if (earlier === null) {
    if (drain.aborted) throw draining();
    if (head.status !== "active") throw statusError(sessionId, head.status);
    const givesWay = ifBusy === "interrupt" && host.inSession(sessionId) !== null;
    if (ifBusy !== "enqueue" && !givesWay) host.checkRoom(caller.userId);
  }
  const { agent: _agent, ...rest } = request;
  const { runId } = await manager.request(sessionId, { ...rest, ...who }, { actor: caller });
  try {
    await host.takeUp(sessionId);
  } catch (error) {
    if (ifBusy !== "reject") report(error);
    else {
      await manager.cancel(sessionId, { runId }, { actor: caller });
      throw error;
    }
  }
  return runId;
}

/** A session that a caller may write to. @throws {SessionError} with what its status is. */
export async function writableHead(services: ServerServices, sessionId: string, caller: Caller): Promise<SessionHead> {
  const head = await visibleHead(services, sessionId, caller);
  if (head.status !== "active") throw statusError(sessionId, head.status);
  return head;
}

/** What is said to whoever comes when the server ends. */
export function draining(): HttpError {
  return new HttpError("DRAINING", "The server is shutting down; try again later.");
}

/** Who is to answer, by name: the first agent unless another or a group is named, or another was asked before. */
function whoIsAsked(
  { agents, groups, models }: ServerServices,
  { agent, group, model }: RunRequest,
  before: string | null,
): { readonly agent?: string } {
  if (model !== undefined && models(model) === null) {
    throw new HttpError("MODEL_NOT_FOUND", `The server has no model ${show(model)}.`);
  }
  if (group === undefined) {
    const [first = null] = agents.keys();
    const name = agent ?? before ?? first;
    if (name !== null && agents.has(name)) return { agent: name };
    throw new HttpError("AGENT_NOT_FOUND", `The server has no agent ${name === null ? "at all" : show(name)}.`);
  }
  if (agent !== undefined || model !== undefined) {
    throw new HttpError("INVALID_REQUEST", "A group answers with its own agents and models; leave those out.");
  }
  if (!groups.has(group)) throw new HttpError("GROUP_NOT_FOUND", `The server has no group ${show(group)}.`);
  return {};
}
