import { type Dispatch, type ReactNode, type SetStateAction, useState } from "react";

/** When something is said to a run that goes on: before the model's next turn, or when it would stop. */
export type SayHow = "steer" | "followUp";

/** How the next message is said. */
export function useSayHow(): readonly [SayHow, Dispatch<SetStateAction<SayHow>>] {
  return useState<SayHow>("steer");
}

/** Chooses when something is said to a run that goes on. */
export function SayHowPicker({
  how,
  onHow,
}: {
  readonly how: SayHow;
  readonly onHow: (how: SayHow) => void;
}): ReactNode {
  return (
    <select
      className="field run-picker"
      aria-label="When it is said"
      value={how}
      onChange={(event) => onHow(event.target.value as SayHow)}
    >
      <option value="steer">before its next turn</option>
      <option value="followUp">when it is done</option>
    </select>
  );
}
