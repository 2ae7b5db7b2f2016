import { inheritedUpTo } from "./fold.ts";
import { rootIdOf, type SessionHeader } from "./header.ts";

/**
 * The header of a fork: it has the position where the fork starts, the given branch name, the root of the source, and
 * what the source inherited from an import. A caller cannot set the last two.
 */
export function forkedHeader(
  given: SessionHeader,
  source: SessionHeader,
  at: { readonly entryId: string | null; readonly version: number },
): SessionHeader {
  const { inherited: _inherited, rootId: _rootId, ...header } = given;
  const branchName = given.forkedFrom?.branchName;
  const forkedFrom = { sessionId: source.id, ...at, ...(branchName !== undefined && { branchName }) };
  // A copy of a fork in an earlier format keeps its header unchanged.
  const root = given.version < 3 ? {} : { rootId: rootIdOf(source) };
  return { ...header, forkedFrom, ...inheritedUpTo(source, at.version), ...root };
}
