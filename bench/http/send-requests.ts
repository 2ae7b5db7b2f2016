import autocannon from "autocannon";
import type { Contender } from "../race.ts";

/** How many connections send requests in parallel by default. */
export const CONNECTIONS = 32;
const SAMPLE_MS = 20;

/** The requests to send repeatedly. */
export interface Requests {
  readonly url: string;
  readonly count: number;
  /** The cookies of the connections, one visitor for each. */
  readonly cookies?: readonly string[];
  readonly connections?: number;
  /** The request, if it is more than its URL. */
  readonly request?: {
    readonly method?: "GET" | "POST";
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  };
  /** The status of a successful response (default 200). */
  readonly status?: number;
}

/** Sends requests over several connections, each after the response to the one before; any other status fails. */
export function requestSender({
  url,
  count,
  cookies = [],
  connections = CONNECTIONS,
  request = {},
  status = 200,
}: Requests): Contender {
  let ended: Promise<autocannon.Result>;
  return {
    async run() {
      let connected = 0;
      const answered = new Promise<void>((resolve) => {
        ended = new Promise((end, fail) => {
          const options = {
            ...request,
            url,
            amount: count,
            // Each connection sends at least one request.
            connections: Math.min(connections, count),
            sampleInt: SAMPLE_MS,
            setupClient: (client: autocannon.Client) => {
              const cookie = cookies[connected++];
              if (cookie !== undefined) client.setHeaders({ cookie });
            },
          };
          const load = autocannon(options, (error, result) => (error ? fail(error) : end(result)));
          let answers = 0;
          // autocannon ends at the end of a sample, some time after the last response.
          load.on("response", () => ++answers === count && resolve());
        });
      });
      await Promise.race([answered, ended]);
    },
    async finish() {
      const { errors, statusCodeStats } = await ended;
      const good = statusCodeStats?.[`${status}`]?.count ?? 0;
      if (good !== count)
        throw new Error(`${count - good} of ${count} requests for ${url} failed, ${errors} unanswered.`);
    },
  };
}
