import type { JsonObject } from "../../../internal/json.ts";
import { SessionNotFoundError } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import { inputIdOf, requestIdOf } from "../../../session/log/open-runs.ts";
import { messagesAsked, type RequestInput } from "../../../session/log/request-messages.ts";
import type { ShownTurn } from "../../shown-turn.ts";
import { WHOLE_CHARACTERS_MAX } from "../routes/answer-bytes.ts";
import { mayCreate, visibleHead } from "../routes/session-access.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { openRunOf } from "./run-views.ts";

/** What a session has come to. */
export interface SoFar {
  /** Null where it could begin. */
  readonly head: SessionHead | null;
  /** What was said, and what waits to be answered. */
  readonly turns: readonly ShownTurn[];
  readonly variables: JsonObject;
  /** How many entries of the log that is. */
  readonly version: number;
}

/** What a request says, as turns; the last has the id that its row will have. */
function turnsAsked(request: RequestInput, turnId: string): readonly ShownTurn[] {
  const messages = messagesAsked(request);
  const last = messages.length - 1;
  return messages.map((message, index) => ({ turnId: index === last ? turnId : `${turnId}/${index}`, ...message }));
}

/** What a session has come to, what waits to be answered included; nothing where it could begin here. */
export async function readSoFar(services: ServerServices, id: string, caller: Caller): Promise<SoFar> {
  const { manager, store } = services;
  if (await mayCreate(services, id)) return { head: null, turns: [], variables: {}, version: 0 };
  const head = await visibleHead(services, id, caller);
  const state = await manager.getState(id, { actor: caller, charactersMax: WHOLE_CHARACTERS_MAX });
  if (state === null) throw new SessionNotFoundError(id);
  const turns: ShownTurn[] = [...state.turns];
  const run = openRunOf(head);
  const request = run?.state === "requested" ? await store.getEntry(id, requestIdOf(run.runId)) : null;
  if (request?.type === "run_request") {
    const turnId = inputIdOf(request.runId);
    if (!turns.some((turn) => turn.turnId === turnId)) turns.push(...turnsAsked(request, turnId));
  }
  return { head, turns, variables: state.variables, version: state.version };
}
