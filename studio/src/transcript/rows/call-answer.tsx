import type { ReactNode } from "react";
import { describeAnswer } from "../../run/run-question.ts";
import { useClient } from "../../request/use-client.ts";
import { useRequest } from "../../request/use-request.ts";
import { useTalkActions } from "../talk-actions.ts";

/** The maximum number of entries that are read between an answer and the results of its tools. */
const ENTRIES_MAX = 200;

/** Who approved or denied a call, when and why; nothing if no question was asked. Loaded when it is shown. */
export function CallAnswer({
  callId,
  after,
  before,
}: {
  readonly callId: string;
  /** The position of the call in the log. */
  readonly after: number;
  /** The position of its result; null if unknown. */
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
