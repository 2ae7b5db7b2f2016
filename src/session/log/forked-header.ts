import { inheritedUpTo } from "./fold.ts";
import type { SessionHeader } from "./header.ts";

/**
 * The header of a fork: with the position that it begins at, a branch name that the given one has, and what of it the source
 * has from an import. A caller cannot say that last one otherwise.
 */
export function forkedHeader(
  given: SessionHeader,
  source: SessionHeader,
  at: { readonly entryId: string | null; readonly version: number },
): SessionHeader {
  const { inherited: _, ...header } = given;
  const branchName = given.forkedFrom?.branchName;
  const forkedFrom = { sessionId: source.id, ...at, ...(branchName !== undefined && { branchName }) };
  return { ...header, forkedFrom, ...inheritedUpTo(source, at.version) };
}
