import { type Dispatch, type ReactNode, type SetStateAction, useState } from "react";

/** When a message is delivered to an active run: before the model's next turn, or when the run would stop. */
export type Delivery = "steer" | "followUp";

/** The delivery of the next message. */
export function useDelivery(): readonly [Delivery, Dispatch<SetStateAction<Delivery>>] {
  return useState<Delivery>("steer");
}

/** Chooses when a message is delivered to an active run. */
export function DeliveryPicker({
  how,
  onHow,
}: {
  readonly how: Delivery;
  readonly onHow: (how: Delivery) => void;
}): ReactNode {
  return (
    <select
      className="field run-picker"
      aria-label="When it is delivered"
      value={how}
      onChange={(event) => onHow(event.target.value as Delivery)}
    >
      <option value="steer">before its next turn</option>
      <option value="followUp">when it is done</option>
    </select>
  );
}
