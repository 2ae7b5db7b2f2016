import type { JsonObject } from "../../../internal/json.ts";
import { SessionNotFoundError } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import { inputIdOf, requestIdOf } from "../../../session/log/open-runs.ts";
import { hasBegun } from "../../../session/log/run-fold.ts";
import { messagesAsked, type RequestInput } from "../../../session/log/request-messages.ts";
import type { ShownTurn } from "../../shown-turn.ts";
import { WHOLE_CHARACTERS_MAX } from "../routes/answer-bytes.ts";
import { mayCreate, visibleHead } from "../routes/session-access.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { openRunOf } from "./run-views.ts";

/** The messages of a session so far. */
export interface SoFar {
  /** Null if the session could be created. */
  readonly head: SessionHead | null;
  /** The turns, including the input of waiting runs. */
  readonly turns: readonly ShownTurn[];
  readonly variables: JsonObject;
  /** The number of log entries that were read. */
  readonly version: number;
}

/** The input of a request as turns; the last has the id that its row will have. */
function turnsAsked(request: RequestInput, turnId: string): readonly ShownTurn[] {
  const messages = messagesAsked(request);
  const last = messages.length - 1;
  return messages.map((message, index) => ({ turnId: index === last ? turnId : `${turnId}/${index}`, ...message }));
}

/** Reads the messages of a session, including the input of waiting runs; none if the session could be created here. */
export async function readSoFar(services: ServerServices, id: string, caller: Caller): Promise<SoFar> {
  const { manager, store } = services;
  if (await mayCreate(services, id)) return { head: null, turns: [], variables: {}, version: 0 };
  const head = await visibleHead(services, id, caller);
  const state = await manager.getState(id, { actor: caller, charactersMax: WHOLE_CHARACTERS_MAX });
  if (state === null) throw new SessionNotFoundError(id);
  const turns: ShownTurn[] = [...state.turns];
  const run = openRunOf(head);
  const request = run !== undefined && !hasBegun(run) ? await store.getEntry(id, requestIdOf(run.runId)) : null;
  if (request?.type === "run_request") {
    const turnId = inputIdOf(request.runId);
    if (!turns.some((turn) => turn.turnId === turnId)) turns.push(...turnsAsked(request, turnId));
  }
  return { head, turns, variables: state.variables, version: state.version };
}
