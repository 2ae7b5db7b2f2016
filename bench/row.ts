/** One line of the table. */
export interface Row {
  readonly section: string;
  readonly what: string;
  /** What was measured, with its unit; or why it was not. */
  readonly measured: string;
  /** What it is compared with, measured in the same rounds. */
  readonly against?: string;
  /** Measured by compared; for a speed the other way round, so that more is better where the target says "at least". */
  readonly ratio?: number;
  readonly target?: Target;
}

/** What must hold, and whether it does. */
export interface Target {
  readonly text: string;
  readonly met: boolean;
}

/** A value that must not be smaller. */
export function atLeast(value: number, limit: number): Target {
  return { text: `≥ ${limit}`, met: value >= limit };
}

/** A value that must not be larger. */
export function atMost(value: number, limit: number, unit = ""): Target {
  return { text: `≤ ${limit}${unit}`, met: value <= limit };
}

/** A value that must stay below a limit. */
export function below(value: number, limit: number, unit: string): Target {
  return { text: `< ${limit} ${unit}`, met: value < limit };
}
