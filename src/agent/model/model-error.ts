import { SessionError } from "../../session/errors.ts";

/** Why a model failed. The first five are transient: the loop retries them. */
export type ModelFailure =
  | "rate_limit"
  | "overloaded"
  | "connection"
  | "timeout"
  | "server"
  | "context_overflow"
  | "authentication"
  | "invalid_request"
  | "malformed"
  | "other";

const PASSING: ReadonlySet<ModelFailure> = new Set(["rate_limit", "overloaded", "connection", "timeout", "server"]);

/** A model request failed; `kind` is the reason, `retryable` tells whether the same request may succeed later. */
export class ModelError extends SessionError {
  readonly kind: ModelFailure;
  readonly provider: string;
  /** The HTTP status, if there was one. */
  readonly status: number | null;
  /** The delay that the provider asked for. */
  readonly retryAfterMs: number | null;
  constructor(
    kind: ModelFailure,
    message: string,
    init: { provider: string; status?: number; retryAfterMs?: number; cause?: unknown },
  ) {
    super("MODEL_FAILED", message, init.cause === undefined ? undefined : { cause: init.cause });
    this.kind = kind;
    this.provider = init.provider;
    this.status = init.status ?? null;
    this.retryAfterMs = init.retryAfterMs ?? null;
  }
  get retryable(): boolean {
    return PASSING.has(this.kind);
  }
}
