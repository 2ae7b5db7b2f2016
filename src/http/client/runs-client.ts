import type { Content } from "../../session/message.ts";
import type { ApprovalRequest, RunRequest, RunView, WireRunEvent } from "../wire.ts";
import { type EventStream, followEvents, type FollowOptions } from "./event-stream.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Runs: start them, follow them, and have a say while they go on. */
export class RunsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Runs a session through an agent or a group of the server. */
  async start(sessionId: string, request: RunRequest, options: CallOptions = {}): Promise<RunView> {
    return this.#transport.json({
      method: "POST",
      path: pathOf`/api/sessions/${sessionId}/runs`,
      json: request,
      ...options,
    });
  }

  /** The runs of a session that the server has or had lately, the latest first. */
  async list(sessionId: string, options: CallOptions = {}): Promise<readonly RunView[]> {
    const path = pathOf`/api/sessions/${sessionId}/runs`;
    return (await this.#transport.json<{ items: RunView[] }>({ path, ...options })).items;
  }

  /** Goes on with the run of a session that was interrupted; null when there is none. */
  async recover(sessionId: string, options: CallOptions = {}): Promise<RunView | null> {
    const path = pathOf`/api/sessions/${sessionId}/recover`;
    const response = await this.#transport.send({ method: "POST", path, json: {}, ...options });
    return response.status === 204 ? null : ((await response.json()) as RunView);
  }

  /** How a run stands. */
  async get(runId: string, options: CallOptions = {}): Promise<RunView> {
    return this.#transport.json({ path: pathOf`/api/runs/${runId}`, ...options });
  }

  /** What happens in a run, from its beginning to its end. */
  events(runId: string, options: FollowOptions = {}): EventStream<WireRunEvent> {
    return followEvents({
      ...options,
      transport: this.#transport,
      path: pathOf`/api/runs/${runId}/events`,
      isLast: isLastEvent,
    });
  }

  /** Stops a run at once; what was said stays. */
  async abort(runId: string, reason?: string, options: CallOptions = {}): Promise<RunView> {
    return this.#act(pathOf`/api/runs/${runId}/abort`, reason === undefined ? {} : { reason }, options);
  }

  /** Lets a call run that waits for approval. */
  async approve(runId: string, callId: string, options: CallOptions = {}): Promise<RunView> {
    return this.#decide(runId, callId, { approve: true }, options);
  }

  /** Refuses a call that waits for approval. */
  async deny(runId: string, callId: string, reason?: string, options: CallOptions = {}): Promise<RunView> {
    return this.#decide(runId, callId, { approve: false, ...(reason === undefined ? {} : { reason }) }, options);
  }

  /** Says something before the model's next turn. */
  async steer(runId: string, content: Content, options: CallOptions = {}): Promise<RunView> {
    return this.#act(pathOf`/api/runs/${runId}/steer`, { content }, options);
  }

  /** Says something when the model would stop. */
  async followUp(runId: string, content: Content, options: CallOptions = {}): Promise<RunView> {
    return this.#act(pathOf`/api/runs/${runId}/follow-ups`, { content }, options);
  }

  #decide(runId: string, callId: string, request: ApprovalRequest, options: CallOptions): Promise<RunView> {
    return this.#act(pathOf`/api/runs/${runId}/approvals/${callId}`, request, options);
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
