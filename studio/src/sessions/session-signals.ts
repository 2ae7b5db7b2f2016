/** Something that was done and can be undone for a while. */
export interface Undoable {
  /** What was done, as a sentence. */
  readonly text: string;
  readonly undo: () => Promise<unknown>;
}

type Listener<T> = (value: T) => void;

const changed = new Set<Listener<void>>();
const offered = new Set<Listener<Undoable | null>>();

/** Tells the list that a session is not what it was, so that it need not find out by itself. */
export function announceChange(): void {
  for (const listener of changed) listener();
}

/** Calls back whenever a session is not what it was; gives the function that ends it. */
export function onChange(listener: Listener<void>): () => void {
  changed.add(listener);
  return () => void changed.delete(listener);
}

/** Offers to undo what was done, wherever in the studio someone goes. */
export function offerUndo(undoable: Undoable): void {
  for (const listener of offered) listener(undoable);
}

/** Takes the offer back, for one because it was undone in another way. */
export function withdrawUndo(): void {
  for (const listener of offered) listener(null);
}

/** Calls back whenever something can be undone, with null when that is over; gives the function that ends it. */
export function onOffer(listener: Listener<Undoable | null>): () => void {
  offered.add(listener);
  return () => void offered.delete(listener);
}
