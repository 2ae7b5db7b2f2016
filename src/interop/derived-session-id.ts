import { createHash } from "node:crypto";
import { isSessionId } from "../session/id.ts";

/** The session of a foreign id: that id where it may be a session's, else one that is always the same for it. */
export function derivedSessionId(kind: string, foreignId: string): string {
  if (isSessionId(foreignId)) return foreignId;
  return `${kind}-${createHash("sha256").update(foreignId).digest("hex").slice(0, 40)}`;
}
