import type { ReactNode } from "react";
import { describeAnswer } from "../../run/asked.ts";
import { useClient } from "../../request/use-client.ts";
import { useRequest } from "../../request/use-request.ts";
import { useTalkActions } from "../talk-actions.ts";

/** Between an answer of a model and what its tools said, there are seldom more than a few entries. */
const ENTRIES_MAX = 200;

/** Who let a call run or refused it, when, and why; nothing where nobody was asked. It is read when it is looked at. */
export function CallAnswer({
  callId,
  after,
  before,
}: {
  readonly callId: string;
  /** The position of the call in the log. */
  readonly after: number;
  /** The position of its result; null where that is not known. */
  readonly before: number | null;
}): ReactNode {
  const client = useClient();
  const sessionId = useTalkActions()?.sessionId ?? null;
  const { data } = useRequest(`${sessionId} ${callId} ${after}`, async (signal) => {
    if (sessionId === null || before === null) return null;
    const { items } = await client.sessions.entries(sessionId, { after, before, limit: ENTRIES_MAX }, { signal });
    const given = items.findLast((entry) => entry.type === "approval" && entry.callId === callId);
    return given === undefined ? null : describeAnswer(given);
  });
  return data === null ? null : <p className="small transcript-tool-answer">{data}</p>;
}
