import { createContext, useContext } from "react";
import type { Content } from "../../../src/session/message.ts";

/** The actions on a turn. They stay the same objects while the session is shown. */
export interface TalkActions {
  readonly sessionId: string;
  /** Moves the leaf to an entry, so that the next message follows it. */
  readonly branch: (entryId: string) => Promise<void>;
  /** Shows the branch of another message in the same place, up to its latest leaf. */
  readonly select: (entryId: string) => Promise<void>;
  /** Moves the leaf to before a turn and sends another message, or the same again. */
  readonly replaceTurn: (parentId: string | null, input: Content) => Promise<void>;
  readonly label: (entryId: string, label: string | null) => Promise<void>;
  /** Forks the session at an entry, and opens the fork. */
  readonly fork: (entryId: string, name: string) => Promise<void>;
}

/** The actions that the rows of a transcript use. */
export const TalkActionsContext = createContext<TalkActions | null>(null);

/** The actions on a turn; null if it is read-only. */
export function useTalkActions(): TalkActions | null {
  return useContext(TalkActionsContext);
}
