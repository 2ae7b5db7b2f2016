import type { SessionView } from "skein/client";
import type { LiveSession } from "./use-live-session.ts";

/** The props of every view of a session. */
export interface SessionProps {
  readonly session: SessionView;
  readonly live: LiveSession;
  /** Further options of the URL, such as `entry` or `with`. */
  readonly options: Readonly<Record<string, string>>;
}
