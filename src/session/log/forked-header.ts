import { inheritedUpTo } from "./fold.ts";
import { rootIdOf, type SessionHeader } from "./header.ts";

/**
 * The header of a fork: with the position that it begins at, a branch name that the given one has, the root of the source, and
 * what of it the source has from an import. A caller cannot say the last two otherwise.
 */
export function forkedHeader(
  given: SessionHeader,
  source: SessionHeader,
  at: { readonly entryId: string | null; readonly version: number },
): SessionHeader {
  const { inherited: _inherited, rootId: _rootId, ...header } = given;
  const branchName = given.forkedFrom?.branchName;
  const forkedFrom = { sessionId: source.id, ...at, ...(branchName !== undefined && { branchName }) };
  // A copy of a fork of an earlier format keeps the header that it has.
  const root = given.version < 3 ? {} : { rootId: rootIdOf(source) };
  return { ...header, forkedFrom, ...inheritedUpTo(source, at.version), ...root };
}
