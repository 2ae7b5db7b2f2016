import { createHash } from "node:crypto";

/**
 * The key by which a provider finds the servers that may have the beginning of a request in their caches: one for all
 * sessions of a chain of forks. It is a hash, which tells the provider neither the session nor the user.
 */
export function promptCacheKey(rootId: string, userId: string | null): string {
  return createHash("sha256")
    .update(JSON.stringify([rootId, userId]))
    .digest("hex")
    .slice(0, 32);
}
