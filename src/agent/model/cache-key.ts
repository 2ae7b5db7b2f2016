import { createHash } from "node:crypto";

/**
 * The key by which a provider routes requests to servers that may have cached their beginning: one for all sessions of
 * a chain of forks. It is a hash, so it reveals neither the session nor the user.
 */
export function promptCacheKey(rootId: string, userId: string | null): string {
  return createHash("sha256")
    .update(JSON.stringify([rootId, userId]))
    .digest("hex")
    .slice(0, 32);
}
