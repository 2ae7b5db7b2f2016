import type { SessionView } from "skein/client";
import type { LiveSession } from "./use-live-session.ts";

/** What every view of a session is given. */
export interface SessionProps {
  readonly session: SessionView;
  readonly live: LiveSession;
  /** What else the address asks for, such as `entry` or `with`. */
  readonly options: Readonly<Record<string, string>>;
}
