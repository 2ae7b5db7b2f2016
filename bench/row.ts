/** One row of the table. */
export interface Row {
  readonly section: string;
  readonly what: string;
  /** The measured value with its unit; or why it was not measured. */
  readonly measured: string;
  /** The value of the other side, measured in the same rounds. */
  readonly against?: string;
  /** This value divided by the other; for a speed the inverse, so that more is better if the target says "at least". */
  readonly ratio?: number;
  readonly target?: Target;
}

/** A target, and whether it is met. */
export interface Target {
  readonly text: string;
  readonly met: boolean;
}

/** A lower limit. */
export function atLeast(value: number, limit: number): Target {
  return { text: `≥ ${limit}`, met: value >= limit };
}

/** An upper limit. */
export function atMost(value: number, limit: number, unit = ""): Target {
  return { text: `≤ ${limit}${unit}`, met: value <= limit };
}

/** An upper limit that must not be reached. */
export function below(value: number, limit: number, unit: string): Target {
  return { text: `< ${limit} ${unit}`, met: value < limit };
}
