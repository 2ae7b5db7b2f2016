import { setMaxListeners } from "node:events";
import { setTimeout as wait } from "node:timers/promises";

/** @typedef {import("skein/client").WireRunEvent} WireRunEvent */
/** @typedef {{ id: string, event: WireRunEvent, stream: number }} Seen which stream it came over, of all of the run */

const streamMsMin = 100;
const streamMsMax = 3_000;
const deniedShare = 0.1;
/** The codes with which a repeated approval is refused, after the response to the first one was lost. */
const answeredCodes = new Set(["QUESTION_NOT_FOUND", "QUESTION_ANSWERED", "RUN_ENDED", "CONFLICT"]);

/** A run, and the events that a reader of it got. */
export class FollowedRun {
  /** @type {Seen[]} */
  seen = [];
  ended = false;
  /** When each stream of its events was answered: the server knew by then how far the log was. @type {number[]} */
  streams = [];

  /**
   * @param {string} sessionId
   * @param {string} runId
   */
  constructor(sessionId, runId) {
    this.sessionId = sessionId;
    this.runId = runId;
  }
}

/** Users who request runs, follow them and answer their questions, each time at another server. */
export class FleetPeople {
  /** @type {FollowedRun[]} */
  runs = [];
  /** @type {string[]} */
  wrong = [];
  /** Requests that failed, by how. @type {Map<string, number>} */
  failures = new Map();
  #fleet;
  #client;
  #answerMsMax;
  #over = new AbortController();
  /** @type {Map<string, FollowedRun>} */
  #followed = new Map();

  /**
   * @param {import("./fleet.mjs").Fleet} fleet
   * @param {number} answerMsMax how long an answer may take before another server is asked
   * @param {typeof import("skein/client")} client
   */
  constructor(fleet, answerMsMax, { createClient }) {
    this.#fleet = fleet;
    this.#answerMsMax = answerMsMax;
    setMaxListeners(0, this.#over.signal);
    this.#client = createClient({ url: "http://127.0.0.1", fetch: (url, init) => this.#fetch(url, init) });
  }

  /**
   * Requests runs of a session one after the other, as long as `wanted` returns true.
   * @param {string} sessionId
   * @param {() => boolean} wanted
   */
  async use(sessionId, wanted) {
    while (wanted()) {
      const run = new FollowedRun(sessionId, `${sessionId}-${this.runs.length}`);
      this.runs.push(run);
      try {
        await this.#again(() => this.#ask(run));
        // The event stream of a run ends without an error when it is no longer needed.
        while (!run.ended && !this.#over.signal.aborted) await this.#again(() => this.#follow(run));
      } catch (error) {
        if (this.#over.signal.aborted) return;
        this.wrong.push(`Run ${run.runId}: ${describe(error)}`);
      }
    }
  }

  /** Stops following the runs. */
  leave() {
    this.#over.abort();
  }

  /** @param {FollowedRun} run */
  async #ask({ sessionId, runId }) {
    await this.#client.runs.start(sessionId, { agent: "worker", input: `go ${runId}`, runId });
  }

  /** @param {FollowedRun} run */
  async #follow(run) {
    const { sessionId, runId, seen } = run;
    this.#followed.set(runId, run);
    const lastEventId = seen.findLast(({ id }) => id !== "")?.id;
    const options = { signal: this.#over.signal, ...(lastEventId === undefined ? {} : { lastEventId }) };
    const events = this.#client.runs.events(sessionId, runId, options);
    for await (const event of events) {
      // An event without an id only reports that events were dropped.
      const id = event.type === "events-dropped" ? "" : (events.lastEventId ?? "");
      seen.push({ id, event, stream: run.streams.length - 1 });
      if (event.type === "approval-required") await this.#answer(sessionId, event.approval.question);
      run.ended = event.type === "run-finished" || event.type === "run-failed";
    }
  }

  /**
   * @param {string} sessionId
   * @param {string} question
   */
  async #answer(sessionId, question) {
    const { runs } = this.#client;
    const no = Math.random() < deniedShare;
    let tries = 0;
    await this.#again(async () => {
      tries += 1;
      try {
        await (no ? runs.deny(sessionId, question) : runs.approve(sessionId, question));
      } catch (error) {
        const { code } = /** @type {{ code?: string }} */ (error);
        if (tries === 1 || !answeredCodes.has(code ?? "")) throw error;
      }
    });
  }

  /**
   * Retries like any client of a fleet, as long as no server responds or the server is shutting down.
   * @param {() => Promise<void>} act
   */
  async #again(act) {
    for (;;) {
      try {
        return await act();
      } catch (error) {
        const { code } = /** @type {{ code?: string }} */ (error);
        const lost =
          code === "CONNECTION_FAILED" ||
          code === "UNEXPECTED_ANSWER" ||
          code === "DRAINING" ||
          code === "STORE_FAILED";
        if (!lost || this.#over.signal.aborted) throw error;
        await wait(50);
      }
    }
  }

  /**
   * Goes to any server, and leaves it after a while.
   * @param {string} url
   * @param {RequestInit} init
   */
  async #fetch(url, init) {
    const { pathname, search } = new URL(url);
    const isStream = pathname.endsWith("/events");
    const ms = isStream ? streamMsMin + Math.random() * (streamMsMax - streamMsMin) : this.#answerMsMax;
    const signal = this.#leavingAfter(ms, init.signal);
    const server = this.#fleet.url;
    const run = isStream ? this.#followed.get(decodeURIComponent(pathname.split("/").at(-2) ?? "")) : undefined;
    const stream = run?.streams.push(Number.POSITIVE_INFINITY) ?? 0;
    try {
      const response = await fetch(`${server}${pathname}${search}`, { ...init, signal });
      if (run !== undefined) run.streams[stream - 1] = Date.now();
      // A server that received SIGTERM during the request answers 503, or no longer listens.
      const drains = response.status === 503 && this.#fleet.isLeaving(server);
      if (response.status >= 500 && !drains) this.#failed(`${response.status}`);
      return response;
    } catch (error) {
      const { name, cause } = /** @type {{ name: string, cause?: { code?: string } }} */ (error);
      if (!isStream || !signal.aborted) this.#failed(cause?.code ?? name);
      throw error;
    }
  }

  /**
   * A signal that aborts after a time, with the other one, and when all leave. It does not combine signals with
   * `AbortSignal.any`: in Node 20 the garbage collection takes the timeout away while the answer's body is still read.
   * @param {number} ms
   * @param {AbortSignal | null} [other]
   */
  #leavingAfter(ms, other) {
    const leaving = new AbortController();
    const signals = [this.#over.signal, ...(other ? [other] : [])];
    const leave = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", leave);
      leaving.abort();
    };
    const timer = setTimeout(leave, ms).unref();
    for (const signal of signals) signal.addEventListener("abort", leave, { once: true });
    if (signals.some(({ aborted }) => aborted)) leave();
    return leaving.signal;
  }

  /** @param {string} how */
  #failed(how) {
    this.failures.set(how, (this.failures.get(how) ?? 0) + 1);
  }
}

/** @param {unknown} error */
function describe(error) {
  const { code, status, message } = /** @type {Error & { code?: string, status?: number }} */ (error);
  return `${code ?? ""} ${status ?? ""} ${message}`;
}
