import type { SessionHead } from "../../session/fold.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";

/** Freezes a head and all in it, looking closer only at what is new in most heads. */
export function freezeHead(head: SessionHead): SessionHead {
  const { path } = head;
  if (!Object.isFrozen(head.header)) freezeDeep(head.header);
  if (!Object.isFrozen(path.settings)) freezeDeep(path.settings);
  freezeDeep(head.openRuns);
  for (const part of [path.usage, path.model, path, head.usage, head.undone]) Object.freeze(part);
  return Object.freeze(head);
}
