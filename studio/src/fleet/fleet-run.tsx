import type { ReactNode } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import { addressOf } from "../shell/route.ts";
import { formatTime } from "../transcript/content/format.ts";
import { useFleetTitle } from "./fleet-titles.ts";

/** One line for a run: its session, agent, user and time. */
export function FleetRun({
  sessionId,
  runner,
  userId,
  when,
  time,
}: {
  readonly sessionId: string;
  /** The agent or group, if it is to be shown. */
  readonly runner?: string;
  readonly userId: string | null;
  /** The meaning of the time, such as "since". */
  readonly when: string;
  readonly time: string | null;
}): ReactNode {
  const title = useFleetTitle(sessionId);
  const who = [runner, userId === null ? "" : `for ${userId}`].filter(Boolean).join(" ");
  return (
    <span className="fleet-run">
      <a title={sessionId} href={addressOf({ page: "session", id: sessionId, view: "talk", options: {} })}>
        <bdi>{title ?? visibleText(sessionId)}</bdi>
      </a>{" "}
      {who !== "" && <span>{visibleText(who)}</span>}{" "}
      <span className="soft">
        {when} {time !== null && <time dateTime={time}>{formatTime(time)}</time>}
      </span>
    </span>
  );
}
