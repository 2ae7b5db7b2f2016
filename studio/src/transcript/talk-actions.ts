import { createContext, useContext } from "react";
import type { Content } from "../../../src/session/message.ts";

/** What can be done with a turn. They are the same objects for as long as the session is shown. */
export interface TalkActions {
  readonly sessionId: string;
  /** Moves the leaf, so that what comes next hangs there. */
  readonly branch: (entryId: string) => Promise<void>;
  /** Goes back to before a turn and says something else, or the same again, there. */
  readonly sayInstead: (parentId: string | null, input: Content) => Promise<void>;
  readonly label: (entryId: string, label: string | null) => Promise<void>;
  /** Makes a session of its own of everything up to an entry, and goes there. */
  readonly fork: (entryId: string, name: string) => Promise<void>;
}

/** The actions that the rows of a transcript offer. */
export const TalkActionsContext = createContext<TalkActions | null>(null);

/** What can be done with a turn; null where it can only be looked at. */
export function useTalkActions(): TalkActions | null {
  return useContext(TalkActionsContext);
}
