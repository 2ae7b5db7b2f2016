/** An action that can be undone for a while. */
export interface Undoable {
  /** The completed action, as a sentence. */
  readonly text: string;
  readonly undo: () => Promise<unknown>;
}

type Listener<T> = (value: T) => void;

const changed = new Set<Listener<void>>();
const offered = new Set<Listener<Undoable | null>>();

/** Notifies the list of a changed session. */
export function announceChange(): void {
  for (const listener of changed) listener();
}

/** Subscribes to changed sessions; returns the function that unsubscribes. */
export function onChange(listener: Listener<void>): () => void {
  changed.add(listener);
  return () => void changed.delete(listener);
}

/** Offers to undo an action, on every page. */
export function offerUndo(undoable: Undoable): void {
  for (const listener of offered) listener(undoable);
}

/** Withdraws the offer, for example because the action was undone in another way. */
export function withdrawUndo(): void {
  for (const listener of offered) listener(null);
}

/** Subscribes to undo offers, with null when one ends; returns the function that unsubscribes. */
export function onOffer(listener: Listener<Undoable | null>): () => void {
  offered.add(listener);
  return () => void offered.delete(listener);
}
