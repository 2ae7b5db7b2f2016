import autocannon from "autocannon";
import type { Contender } from "../race.ts";

/** How many connections send requests at the same time, unless told otherwise. */
export const CONNECTIONS = 32;
const SAMPLE_MS = 20;

/** What is asked for, again and again. */
export interface Requests {
  readonly url: string;
  readonly count: number;
  /** What each connection sends along, as so many visitors. */
  readonly cookies?: readonly string[];
  readonly connections?: number;
  /** What is sent with each request, where that is more than its address. */
  readonly request?: {
    readonly method?: "GET" | "POST";
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  };
  /** What a good answer is (default 200). */
  readonly status?: number;
}

/** Sends requests over some connections, each as soon as the one before it was answered; any other answer than the good one fails. */
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
            // Each sends one request at least.
            connections: Math.min(connections, count),
            sampleInt: SAMPLE_MS,
            setupClient: (client: autocannon.Client) => {
              const cookie = cookies[connected++];
              if (cookie !== undefined) client.setHeaders({ cookie });
            },
          };
          const load = autocannon(options, (error, result) => (error ? fail(error) : end(result)));
          let answers = 0;
          // The load is said to be over at the end of a sample, which is some time after the last answer.
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
