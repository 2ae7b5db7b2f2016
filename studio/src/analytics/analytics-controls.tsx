import { type ReactNode, useId } from "react";
import { METRICS, type Metric } from "./metric.ts";
import { type Period, PERIODS, problemOf } from "./period.ts";
import "./analytics-controls.css";

/** The choices of the analytics page. */
export interface AnalyticsChoice {
  readonly period: Period;
  readonly userId: string;
  readonly metric: Metric;
}

/** The controls for the period, the user and the metric. */
export function AnalyticsControls({
  choice,
  onChange,
  users,
}: {
  readonly choice: AnalyticsChoice;
  readonly onChange: (choice: AnalyticsChoice) => void;
  readonly users: readonly string[];
}): ReactNode {
  const id = useId();
  const { period, userId, metric } = choice;
  const problem = problemOf(period);
  return (
    <div className="analytics-controls">
      <label className="small">
        Period
        <select
          className="field"
          value={period.kind === "last" ? String(period.days) : period.kind}
          onChange={(event) => onChange({ ...choice, period: periodOf(event.target.value) })}
        >
          {PERIODS.map(({ value, name }) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {period.kind === "custom" &&
        (["first", "last"] as const).map((side) => (
          <label key={side} className="small">
            {side === "first" ? "From" : "To"}
            <input
              type="date"
              className="field"
              value={period[side]}
              aria-invalid={problem !== null}
              aria-describedby={problem === null ? undefined : id}
              onChange={(event) => onChange({ ...choice, period: { ...period, [side]: event.target.value } })}
            />
          </label>
        ))}
      {users.length > 1 && (
        <label className="small">
          User
          <select
            className="field"
            value={userId}
            onChange={(event) => onChange({ ...choice, userId: event.target.value })}
          >
            <option value="">Everyone</option>
            {users.map((user) => (
              <option key={user} value={user}>
                {user}
              </option>
            ))}
          </select>
        </label>
      )}
      <fieldset className="analytics-metrics">
        <legend className="small">Show</legend>
        {METRICS.map((each) => (
          <label key={each.id} className="analytics-metric">
            <input
              type="radio"
              name={`${id}-metric`}
              className="only-for-readers"
              checked={each.id === metric.id}
              onChange={() => onChange({ ...choice, metric: each })}
            />
            {each.name}
          </label>
        ))}
      </fieldset>
      {problem !== null && (
        <p id={id} role="alert" className="analytics-problem">
          {problem}
        </p>
      )}
    </div>
  );
}

function periodOf(value: string): Period {
  if (value === "all") return { kind: "all" };
  return value === "custom" ? { kind: "custom", first: "", last: "" } : { kind: "last", days: Number(value) };
}
