import { uuidv7 } from "../../internal/uuid.ts";
import type { Content } from "../../session/message.ts";
import type { AnswerRequest, ListRuns, RunRequest, RunView, WireRunEvent } from "../run-wire.ts";
import type { Page } from "../wire.ts";
import { ClientError } from "./client-error.ts";
import { type EventStream, followEvents, type FollowOptions } from "./event-stream.ts";
import { type CallOptions, pathOf, type Transport, allPages } from "./transport.ts";

const START_TRIES_MAX = 3;

/** Requests, follows, steers and cancels runs. Any server of a store can answer for every run of the store. */
export class RunsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Requests a run of a session by an agent or a group of the server. If the request has no `runId`, the client makes one, and
   * retries with it when the answer is lost: the retry gets the same run.
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

  /**
   * One page of the open runs in the state `state`, over all sessions of the caller; `state: "asking"` is the inbox of questions.
   */
  async list(query: ListRuns, options: CallOptions = {}): Promise<Page<RunView>> {
    return this.#transport.json({ path: "/api/runs", query, ...options });
  }

  /** All open runs in that state, page by page. */
  listAll(query: ListRuns, options: CallOptions = {}): AsyncIterable<RunView> {
    return allPages((cursor) => this.list({ ...query, ...(cursor === null ? {} : { cursor }) }, options));
  }

  /** The runs of a session, the latest first: all open runs, and the latest `limit` of the others (default 100). */
  async ofSession(sessionId: string, given?: { readonly limit?: number } & CallOptions): Promise<readonly RunView[]> {
    const { signal, ...query } = given ?? {};
    const options = {
      path: pathOf`/api/sessions/${sessionId}/runs`,
      query,
      ...(signal === undefined ? {} : { signal }),
    };
    return (await this.#transport.json<{ items: RunView[] }>(options)).items;
  }

  /** The current state of a run. */
  async get(sessionId: string, runId: string, options: CallOptions = {}): Promise<RunView> {
    return this.#transport.json({ path: pathOf`/api/sessions/${sessionId}/runs/${runId}`, ...options });
  }

  /** Recovers the run of a session that was interrupted or waits to continue; null if there is none. */
  async recover(sessionId: string, options: CallOptions = {}): Promise<RunView | null> {
    const path = pathOf`/api/sessions/${sessionId}/recover`;
    const response = await this.#transport.send({ method: "POST", path, json: {}, ...options });
    return response.status === 204 ? null : ((await response.json()) as RunView);
  }

  /**
   * The events of a run, from its beginning to its end. The stream stays open while the run is parked, and continues after its
   * questions are answered; a reader who does not want to wait stops at `run-parked`.
   */
  events(sessionId: string, runId: string, options: FollowOptions = {}): EventStream<WireRunEvent> {
    return followEvents({
      ...options,
      transport: this.#transport,
      path: pathOf`/api/sessions/${sessionId}/runs/${runId}/events`,
      isLast: isLastEvent,
    });
  }

  /** Cancels a run in whatever process it is; its entries are kept. */
  async cancel(sessionId: string, runId: string, given?: CallOptions & { readonly reason?: string }): Promise<RunView> {
    const { reason, ...options } = given ?? {};
    return this.#act(pathOf`/api/sessions/${sessionId}/runs/${runId}/cancel`, { reason }, options);
  }

  /** Approves a call that waits for approval. */
  async approve(
    sessionId: string,
    question: string,
    given?: CallOptions & { readonly note?: string },
  ): Promise<RunView> {
    const { note, ...options } = given ?? {};
    return this.#answer(sessionId, question, { approve: true, ...(note === undefined ? {} : { note }) }, options);
  }

  /** Denies a call that waits for approval; the model receives the reason. */
  async deny(
    sessionId: string,
    question: string,
    given?: CallOptions & Omit<AnswerRequest, "approve">,
  ): Promise<RunView> {
    const { reason, note, ...options } = given ?? {};
    const answer = {
      approve: false,
      ...(reason === undefined ? {} : { reason }),
      ...(note === undefined ? {} : { note }),
    };
    return this.#answer(sessionId, question, answer, options);
  }

  /** Adds a message before the next round of the session's running run. */
  async steer(sessionId: string, content: Content, options: CallOptions = {}): Promise<RunView> {
    return this.#act(pathOf`/api/sessions/${sessionId}/steer`, { content }, options);
  }

  /** Adds a message when the session's running run would stop. */
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

/** Events with an agent belong to a run inside of a group, whose end does not end the group's run. */
function isLastEvent(event: WireRunEvent): boolean {
  if ("agent" in event) return false;
  return ["run-finished", "run-failed", "group-finished", "group-failed"].includes(event.type);
}
