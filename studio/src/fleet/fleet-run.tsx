import type { ReactNode } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import { addressOf } from "../shell/route.ts";
import { formatTime } from "../transcript/content/format.ts";

/** A run in one line: its session, who answers in it, for whom, and since when. */
export function FleetRun({
  sessionId,
  runner,
  userId,
  when,
  time,
}: {
  readonly sessionId: string;
  /** Who answers, where that is to be said. */
  readonly runner?: string;
  readonly userId: string | null;
  /** What the time means, as in "since". */
  readonly when: string;
  readonly time: string | null;
}): ReactNode {
  const who = [runner, userId === null ? "" : `for ${userId}`].filter(Boolean).join(" ");
  return (
    <span className="fleet-run">
      <a href={addressOf({ page: "session", id: sessionId, view: "talk", options: {} })}>
        <bdi>{visibleText(sessionId)}</bdi>
      </a>{" "}
      {who !== "" && <span>{visibleText(who)}</span>}{" "}
      <span className="soft">
        {when} {time !== null && <time dateTime={time}>{formatTime(time)}</time>}
      </span>
    </span>
  );
}
