import { createHash } from "node:crypto";
import { isSessionId } from "../session/id.ts";

/** The session id for a foreign id: the foreign id itself if it is a valid session id, else a hash of it. */
export function derivedSessionId(kind: string, foreignId: string): string {
  if (isSessionId(foreignId)) return foreignId;
  return `${kind}-${createHash("sha256").update(foreignId).digest("hex").slice(0, 40)}`;
}
