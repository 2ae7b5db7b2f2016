import type { JsonValue } from "../../internal/json.ts";
import type { SandboxReach } from "../sandbox/sandbox.ts";

/** A call that a run has asked about and that nobody has answered. */
export interface RunQuestion {
  /** What an answer names: the id of the entry that asks, where the run is kept. */
  readonly question: string;
  readonly callId: string;
  readonly name: string;
  /** The arguments, checked. */
  readonly arguments: JsonValue;
  /** What the call can do at most, as its tool says. */
  readonly effects: "reads" | "writes" | "commands";
  /** Where it would act, and what it could reach from there; null where nothing is known. */
  readonly reach: SandboxReach | null;
}

/** What a run came to, beside what was said. */
export interface RunResult {
  /** The stored session that the run was kept in; null where it was kept in none. */
  readonly sessionId: string | null;
  /** `parked`: the run waits for answers to its questions, and goes on when it is recovered after them. */
  readonly status: "finished" | "parked";
  /** The questions of a parked run; empty if it has finished. */
  readonly questions: readonly RunQuestion[];
}
