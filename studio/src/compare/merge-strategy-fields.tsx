import type { ReactNode } from "react";
import type { TreeNodeView } from "skein/client";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { useRequest } from "../request/use-request.ts";
import { visibleText } from "../markdown/visible-text.ts";
import type { MergeChoice } from "./merge-form.tsx";

const STRATEGIES = [
  { value: "append", name: "Append", about: "all of the fork's new turns" },
  { value: "selective", name: "Selective", about: "the turns that you pick" },
  { value: "summary", name: "Summary", about: "a summary that a model writes" },
] as const;

/** The merge strategy and its options. */
export function MergeStrategyFields({
  choice,
  turns,
  more,
  onChange,
}: {
  readonly choice: MergeChoice;
  readonly turns: readonly TreeNodeView[];
  /** Whether the fork has more turns than these. */
  readonly more: boolean;
  readonly onChange: (choice: MergeChoice) => void;
}): ReactNode {
  const may = useMay();
  return (
    <>
      <fieldset className="compare-strategies">
        <legend>Strategy</legend>
        {STRATEGIES.map(({ value, name, about }) => (
          <label key={value}>
            <input
              type="radio"
              name="strategy"
              checked={choice.strategy === value}
              disabled={value === "summary" && !may.run}
              onChange={() => onChange({ ...choice, strategy: value })}
            />
            <span>
              {name} <span className="small soft">{about}</span>
            </span>
          </label>
        ))}
        {!may.run && <p className="small soft">{MAY_NOT.run}</p>}
      </fieldset>
      {choice.strategy === "selective" && <TurnPicker choice={choice} turns={turns} more={more} onChange={onChange} />}
      {choice.strategy === "summary" && <ModelPicker choice={choice} onChange={onChange} />}
    </>
  );
}

function TurnPicker({
  choice,
  turns,
  more,
  onChange,
}: {
  readonly choice: MergeChoice;
  readonly turns: readonly TreeNodeView[];
  /** Whether the fork has more turns than these. */
  readonly more: boolean;
  readonly onChange: (choice: MergeChoice) => void;
}): ReactNode {
  const pick = (ids: readonly string[]): void => onChange({ ...choice, turnIds: new Set(ids) });
  if (turns.length === 0) return <p className="soft">The fork has no new turns.</p>;
  return (
    <fieldset className="compare-picks">
      <legend>Turns to merge</legend>
      <p className="compare-merge-actions">
        <button type="button" className="button" onClick={() => pick(turns.map(({ id }) => id))}>
          All
        </button>
        <button type="button" className="button" onClick={() => pick([])}>
          None
        </button>
        <span className="small soft">
          {choice.turnIds.size} of {turns.length}
          {more && "; show more turns above to pick later ones"}
        </span>
      </p>
      <div className="compare-pick-list">
        {turns.map(({ id, role, preview, toolCalls }) => (
          <label key={id}>
            <input
              type="checkbox"
              checked={choice.turnIds.has(id)}
              onChange={(event) =>
                pick(
                  turns
                    .map((turn) => turn.id)
                    .filter((each) => (each === id ? event.target.checked : choice.turnIds.has(each))),
                )
              }
            />
            <span className="compare-pick-text">
              <strong>{role}</strong> {visibleText(preview || toolCalls.join(", "))}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function ModelPicker({
  choice,
  onChange,
}: {
  readonly choice: MergeChoice;
  readonly onChange: (choice: MergeChoice) => void;
}): ReactNode {
  const client = useClient();
  const catalogue = useRequest("catalogue", (signal) => client.catalogue({ signal }));
  return (
    <RequestBoundary requested={catalogue} what="the models">
      {({ models }) => (
        <label className="compare-model">
          Model
          <select
            className="field"
            value={choice.model}
            onChange={(event) => onChange({ ...choice, model: event.target.value })}
          >
            <option value="">the session's model</option>
            {models.map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
          <span className="small soft">The model is called for the preview, and again for the merge.</span>
        </label>
      )}
    </RequestBoundary>
  );
}
