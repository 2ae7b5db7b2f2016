import type { JsonValue } from "../../internal/json.ts";
import type { SandboxReach } from "../sandbox/sandbox.ts";

/** An unanswered question of a run about a call. */
export interface RunQuestion {
  /** The id of the question's entry, which an answer refers to; only if the run is stored. */
  readonly question: string;
  readonly callId: string;
  readonly name: string;
  /** The validated arguments. */
  readonly arguments: JsonValue;
  /** The most that the call can do, as declared by its tool. */
  readonly effects: "reads" | "writes" | "commands";
  /** Where the call would act and what it could reach from there; null if unknown. */
  readonly reach: SandboxReach | null;
}

/** The result of a run, besides its messages. */
export interface RunResult {
  /** The stored session of the run; null if it was not stored. */
  readonly sessionId: string | null;
  /** `parked`: the run waits for answers to its questions and continues when it is recovered after they are given. */
  readonly status: "finished" | "parked";
  /** The questions of a parked run; empty if it has finished. */
  readonly questions: readonly RunQuestion[];
}
