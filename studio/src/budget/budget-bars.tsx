import type { ReactNode } from "react";
import type { BudgetLevel } from "../../../src/session/payer.ts";
import { formatTime } from "../transcript/content/format.ts";
import { spentOf, stateOf, windowName } from "./budget-words.ts";
import "./budget.css";

/** A bar for each limit of the user's budgets. */
export function BudgetBars({ levels }: { readonly levels: readonly BudgetLevel[] }): ReactNode {
  return (
    <ul className="budget-bars">
      {levels.map((level) => (
        <li key={`${level.window} ${level.unit}`}>
          <BudgetBar level={level} />
        </li>
      ))}
    </ul>
  );
}

function BudgetBar({ level }: { readonly level: BudgetLevel }): ReactNode {
  const { window, limit, spent, reserved, movesOnAt } = level;
  const state = stateOf(level);
  const amounts = spentOf(level);
  const share = (amount: number): string => `${limit === 0 ? 100 : Math.min(100, (amount / limit) * 100)}%`;
  return (
    <>
      <p className="budget-line small">
        <span className="soft">Last {windowName(window)}</span>
        <span className={`budget-amounts budget-${state}`}>{amounts}</span>
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: a meter element shows one amount, and this has two. */}
      <div
        className="budget-track"
        role="meter"
        aria-label={`Budget of ${windowName(window)}`}
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={Math.min(spent, limit)}
        aria-valuetext={amounts}
      >
        <span className="budget-reserved" style={{ width: share(spent + reserved) }} />
        <span className={`budget-spent budget-${state}`} style={{ width: share(spent) }} />
      </div>
      {state === "reached" && movesOnAt !== null && (
        <p className="small soft">
          Used up; runs are possible again at <time dateTime={movesOnAt}>{formatTime(movesOnAt)}</time>.
        </p>
      )}
    </>
  );
}
