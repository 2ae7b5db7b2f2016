import { useEffect, useRef } from "react";
import { useClient } from "../request/use-client.ts";
import { type Requested, useRequest } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import type { AnalyticsRow, CallFigures } from "./metric.ts";

/** How often the sums are reloaded while the page is visible. */
const POLL_MS = 20_000;

/** How soon a failed request is repeated. */
const RETRY_MS = 3000;

/** The sums of a period, as the server returns them. */
export interface Sums {
  readonly total: AnalyticsRow | undefined;
  readonly byDay: readonly AnalyticsRow[];
  readonly byModel: readonly AnalyticsRow[];
  readonly byUser: readonly AnalyticsRow[];
}

/** The filter of the sums. */
export interface SumsRequest {
  readonly from?: string;
  readonly to?: string;
  readonly userId?: string;
}

/** Loads the sums of a period; the earlier ones are kept until the new ones arrive. */
export function useAnalytics(asked: SumsRequest): Requested<Sums> {
  const client = useClient();
  const requested = useRequest(JSON.stringify(asked), async (signal): Promise<Sums> => {
    const rowsBy = async (...groupBy: ("day" | "model" | "user")[]): Promise<readonly AnalyticsRow[]> =>
      (await client.analytics({ ...asked, groupBy }, { signal })).rows;
    const [all, byDay, byModel, byUser] = await Promise.all([rowsBy(), rowsBy("day"), rowsBy("model"), rowsBy("user")]);
    return { total: all[0], byDay, byModel, byUser };
  });
  const { loading, reload } = requested;
  // A new attempt clears the error, which would make its message blink.
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

/** Loads the latencies and the calls by tool; reloads them when the number of messages changes. */
export function useCallAnalytics(asked: SumsRequest, messages: number): Requested<CallFigures> {
  const client = useClient();
  return useRevised(JSON.stringify(asked), messages, (signal) => client.callAnalytics(asked, { signal }));
}
