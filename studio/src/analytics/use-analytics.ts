import { useEffect, useRef } from "react";
import { useClient } from "../request/use-client.ts";
import { type Requested, useRequest } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import type { AnalyticsRow, CallFigures } from "./metric.ts";

/** How often the sums are asked for again while someone can see them. */
const POLL_MS = 20_000;

/** How soon a server is asked again that did not answer. */
const RETRY_MS = 3000;

/** The sums of a period, as the server made them. */
export interface Sums {
  readonly total: AnalyticsRow | undefined;
  readonly byDay: readonly AnalyticsRow[];
  readonly byModel: readonly AnalyticsRow[];
  readonly byUser: readonly AnalyticsRow[];
}

/** What sums are asked for. */
export interface SumsRequest {
  readonly from?: string;
  readonly to?: string;
  readonly userId?: string;
}

/** The sums of a period. Those that were there before stay until the new ones come. */
export function useAnalytics(asked: SumsRequest): Requested<Sums> {
  const client = useClient();
  const requested = useRequest(JSON.stringify(asked), async (signal): Promise<Sums> => {
    const rowsBy = async (...groupBy: ("day" | "model" | "user")[]): Promise<readonly AnalyticsRow[]> =>
      (await client.analytics({ ...asked, groupBy }, { signal })).rows;
    const [all, byDay, byModel, byUser] = await Promise.all([rowsBy(), rowsBy("day"), rowsBy("model"), rowsBy("user")]);
    return { total: all[0], byDay, byModel, byUser };
  });
  const { loading, reload } = requested;
  // A new try clears the error, and each one would make the note of it blink.
  const kept = useRef<{ sums: Sums | null; error: Error | null }>({ sums: null, error: null });
  if (requested.data !== null) kept.current.sums = requested.data;
  if (!loading) kept.current.error = requested.error;
  const { error } = kept.current;
  useEffect(() => {
    if (loading) return;
    const again = (): void => {
      if (document.visibilityState === "visible") reload();
    };
    const poll = setInterval(again, error === null ? POLL_MS : RETRY_MS);
    window.addEventListener("focus", again);
    return () => {
      clearInterval(poll);
      window.removeEventListener("focus", again);
    };
  }, [loading, error, reload]);
  return { ...requested, error, data: requested.data ?? (error === null ? kept.current.sums : null) };
}

/** How long answers took and which tools were called; asked for again when there are more messages. */
export function useCallAnalytics(asked: SumsRequest, messages: number): Requested<CallFigures> {
  const client = useClient();
  return useRevised(JSON.stringify(asked), messages, (signal) => client.callAnalytics(asked, { signal }));
}
