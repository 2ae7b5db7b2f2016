import { uuidv7 } from "../../internal/uuid.ts";
import type { Content } from "../../session/message.ts";
import type { AnswerRequest, ListRuns, RunRequest, RunView, WireRunEvent } from "../run-wire.ts";
import type { Page } from "../wire.ts";
import { ClientError } from "./client-error.ts";
import { type EventStream, followEvents, type FollowOptions } from "./event-stream.ts";
import { type CallOptions, pathOf, type Transport, allPages } from "./transport.ts";

const START_TRIES_MAX = 3;

/** Runs: ask for them, follow them, and have a say while they go on. Any server of a store answers for all of them. */
export class RunsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Runs a session through an agent or a group of the server. Without a `runId` in the request it makes one, and asks again
   * under it where the answer was lost: that is the same run.
   */
  async start(sessionId: string, request: RunRequest, options: CallOptions = {}): Promise<RunView> {
    const json = { runId: uuidv7(), ...request };
    for (let tries = 1; ; tries++) {
      try {
        return await this.#act(pathOf`/api/sessions/${sessionId}/runs`, json, options);
      } catch (error) {
        const lost = error instanceof ClientError && error.code === "CONNECTION_FAILED";
        if (!lost || tries === START_TRIES_MAX) throw error;
      }
    }
  }

  /** One page of the runs that stand there, of all sessions of the caller; `state: "asking"` is the inbox of questions. */
  async list(query: ListRuns, options: CallOptions = {}): Promise<Page<RunView>> {
    return this.#transport.json({ path: "/api/runs", query, ...options });
  }

  /** All runs that stand there, page by page. */
  listAll(query: ListRuns, options: CallOptions = {}): AsyncIterable<RunView> {
    return allPages((cursor) => this.list({ ...query, ...(cursor === null ? {} : { cursor }) }, options));
  }

  /** The runs of a session, the latest first: all that are open, and the latest of all, at most so many (default 100). */
  async ofSession(
    sessionId: string,
    { signal, ...query }: { readonly limit?: number } & CallOptions = {},
  ): Promise<readonly RunView[]> {
    const options = {
      path: pathOf`/api/sessions/${sessionId}/runs`,
      query,
      ...(signal === undefined ? {} : { signal }),
    };
    return (await this.#transport.json<{ items: RunView[] }>(options)).items;
  }

  /** How a run stands. */
  async get(sessionId: string, runId: string, options: CallOptions = {}): Promise<RunView> {
    return this.#transport.json({ path: pathOf`/api/sessions/${sessionId}/runs/${runId}`, ...options });
  }

  /** Goes on with the run of a session that was interrupted, or waits to go on; null when there is none. */
  async recover(sessionId: string, options: CallOptions = {}): Promise<RunView | null> {
    const path = pathOf`/api/sessions/${sessionId}/recover`;
    const response = await this.#transport.send({ method: "POST", path, json: {}, ...options });
    return response.status === 204 ? null : ((await response.json()) as RunView);
  }

  /**
   * What happens in a run, from its beginning to its end. One that parks goes on once it has its answers, in the same
   * stream; who does not want to wait for that leaves at `run-parked`.
   */
  events(sessionId: string, runId: string, options: FollowOptions = {}): EventStream<WireRunEvent> {
    return followEvents({
      ...options,
      transport: this.#transport,
      path: pathOf`/api/sessions/${sessionId}/runs/${runId}/events`,
      isLast: isLastEvent,
    });
  }

  /** Tells a run to stop, wherever it is; what was said stays. */
  async cancel(
    sessionId: string,
    runId: string,
    { reason, ...options }: CallOptions & { readonly reason?: string } = {},
  ): Promise<RunView> {
    return this.#act(pathOf`/api/sessions/${sessionId}/runs/${runId}/cancel`, { reason }, options);
  }

  /** Lets a call run that waits for approval. */
  async approve(
    sessionId: string,
    question: string,
    { note, ...options }: CallOptions & { readonly note?: string } = {},
  ): Promise<RunView> {
    return this.#answer(sessionId, question, { approve: true, ...(note === undefined ? {} : { note }) }, options);
  }

  /** Refuses a call that waits for approval; the model is told the reason. */
  async deny(
    sessionId: string,
    question: string,
    { reason, note, ...options }: CallOptions & Omit<AnswerRequest, "approve"> = {},
  ): Promise<RunView> {
    const answer = {
      approve: false,
      ...(reason === undefined ? {} : { reason }),
      ...(note === undefined ? {} : { note }),
    };
    return this.#answer(sessionId, question, answer, options);
  }

  /** Says something before the model's next turn, to the run of the session that has begun. */
  async steer(sessionId: string, content: Content, options: CallOptions = {}): Promise<RunView> {
    return this.#act(pathOf`/api/sessions/${sessionId}/steer`, { content }, options);
  }

  /** Says something when the model would stop, likewise. */
  async followUp(sessionId: string, content: Content, options: CallOptions = {}): Promise<RunView> {
    return this.#act(pathOf`/api/sessions/${sessionId}/follow-ups`, { content }, options);
  }

  #answer(sessionId: string, question: string, request: AnswerRequest, options: CallOptions): Promise<RunView> {
    return this.#act(pathOf`/api/sessions/${sessionId}/questions/${question}`, request, options);
  }

  #act(path: string, json: object, options: CallOptions): Promise<RunView> {
    return this.#transport.json({ method: "POST", path, json, ...options });
  }
}

/** What an agent of a group does ends its own run, and not that of the group. */
function isLastEvent(event: WireRunEvent): boolean {
  if ("agent" in event) return false;
  return ["run-finished", "run-failed", "group-finished", "group-failed"].includes(event.type);
}
