import { SessionError } from "../../session/errors.ts";

/** How a model failed. The first five pass by themselves, so that the loop tries them again. */
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

/** A model gave no answer; `kind` says why, `retryable` whether the same request may succeed later. */
export class ModelError extends SessionError {
  readonly kind: ModelFailure;
  readonly provider: string;
  /** The HTTP status, where there was one. */
  readonly status: number | null;
  /** How long the provider asked to wait. */
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
