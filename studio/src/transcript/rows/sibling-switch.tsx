import { createContext, type ReactNode, useContext } from "react";
import { useAction } from "../../request/use-action.ts";
import { Icon } from "../../shell/icon.tsx";
import { useTalkActions } from "../talk-actions.ts";

/** The siblings of each message of the session, itself included, in log order. */
export const SiblingsContext = createContext<ReadonlyMap<string, readonly string[]>>(new Map());

/** Switches between the answers to one turn, or the versions of one; nothing where there is only one. */
export function SiblingSwitch({
  ids,
  what,
}: {
  /** The entries of the row. */
  readonly ids: readonly string[];
  readonly what: "answer" | "message";
}): ReactNode {
  const all = useContext(SiblingsContext);
  const actions = useTalkActions();
  const id = ids.find((each) => (all.get(each)?.length ?? 0) > 1);
  const siblings = (id === undefined ? undefined : all.get(id)) ?? [];
  const at = siblings.indexOf(id ?? "");
  const select = useAction(async (entryId: string) => actions?.select(entryId));
  if (actions === null || at < 0) return null;
  const step = (by: -1 | 1, name: string): ReactNode => {
    const to = siblings[at + by];
    return (
      <button
        type="button"
        className="button button-plain button-icon transcript-change"
        aria-label={`${name} ${what}`}
        title={`${name} ${what}`}
        disabled={to === undefined || select.busy}
        onClick={() => to !== undefined && void select.run(to)}
      >
        <Icon name={by < 0 ? "left" : "right"} />
      </button>
    );
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form.
    <span className="transcript-siblings small" role="group" aria-label={`Other ${what}s in this place`}>
      {step(-1, "Previous")}
      <span>
        {at + 1} of {siblings.length}
      </span>
      {step(1, "Next")}
      {select.error !== null && <span role="alert">{select.error.message}</span>}
    </span>
  );
}
