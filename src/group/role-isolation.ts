import { checkObjects } from "../session/check-arguments.ts";
import type { JsonValue } from "../internal/json.ts";
import type { SessionTurn } from "../session/state/state.ts";

/**
 * Decides by a turn's metadata which agents of a group see the turn.
 *
 * - With `visibleTo`, a list of names, only those agents see it.
 * - Otherwise, with `hiddenFrom`, all agents but those see it.
 * - Otherwise all agents see it. A string counts as a list with one name; any other value hides the turn from all.
 */
export class RoleIsolation {
  /** The turns that an agent may see, in order. */
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
