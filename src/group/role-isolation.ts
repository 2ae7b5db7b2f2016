import { checkObjects } from "../session/check-arguments.ts";
import type { JsonValue } from "../internal/json.ts";
import type { SessionTurn } from "../session/state/state.ts";

/**
 * Decides by a turn's metadata which agents of a group see it.
 *
 * - `visibleTo` lists agents: only those see it.
 * - Otherwise `hiddenFrom` lists agents: all but those see it.
 * - Otherwise everyone sees it. A text counts as a list of one; anything else that is no list hides the turn from all.
 */
export class RoleIsolation {
  /** The turns that an agent may see, in their order. */
  filterForAgent(turns: readonly SessionTurn[], agentName: string): readonly SessionTurn[] {
    checkObjects(turns, "filterForAgent", "a list of turns");
    return turns.filter(({ metadata = {} }) => isVisible(metadata.visibleTo, metadata.hiddenFrom, agentName));
  }
}

function isVisible(visibleTo: JsonValue | undefined, hiddenFrom: JsonValue | undefined, name: string): boolean {
  if (visibleTo !== undefined && visibleTo !== null) return namesIn(visibleTo)?.includes(name) ?? false;
  if (hiddenFrom !== undefined && hiddenFrom !== null) return namesIn(hiddenFrom)?.includes(name) === false;
  return true;
}

function namesIn(value: JsonValue): readonly JsonValue[] | null {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value : null;
}
