import { memo, type ReactNode, useMemo } from "react";
import type { TurnPair } from "./align-turns.ts";
import { compareWords } from "./compare-words.ts";
import { TurnCard } from "./turn-card.tsx";

/** Two turns side by side; words that only one contains are marked. */
export const TurnPairRow: (props: { readonly pair: TurnPair }) => ReactNode = memo(({ pair }) => {
  const { left, right, same } = pair;
  const words = useMemo(
    () => (left === null || right === null || same ? null : compareWords(left.text, right.text)),
    [left, right, same],
  );
  return (
    <li className={same ? "compare-pair compare-pair-same" : "compare-pair"}>
      <div className="compare-cell compare-cell-left">
        <span className="only-for-readers">{left === null ? "A has no turn here" : "A"}</span>
        {left === null ? (
          <Missing letter="A" />
        ) : (
          <TurnCard row={left} pieces={words?.left ?? null} side="left" same={same} />
        )}
      </div>
      <div className="compare-cell compare-cell-right">
        <span className="only-for-readers">{right === null ? "B has no turn here" : "B"}</span>
        {right === null ? (
          <Missing letter="B" />
        ) : (
          <TurnCard row={right} pieces={words?.right ?? null} side="right" same={same} />
        )}
      </div>
    </li>
  );
});

function Missing({ letter }: { readonly letter: string }): ReactNode {
  return (
    <p className="compare-missing small soft" aria-hidden="true">
      no turn in {letter}
    </p>
  );
}
