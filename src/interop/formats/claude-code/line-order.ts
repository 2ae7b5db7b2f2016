import type { JsonObject } from "../../../internal/json.ts";

/** A line on its way out. */
export interface OutLine {
  readonly value: JsonObject;
  /** The text of a line that an import kept. */
  readonly text?: string;
  /** Where it hangs if the line that it names as its parent is not written. */
  readonly parentUuid: string | null;
}

/**
 * Puts the lines of an answer back among the lines that the program wrote before the answer was whole: a result of its
 * first call, or progress. In a log these follow the answer.
 */
export class LineOrder {
  #lines: readonly OutLine[] = [];
  #before: readonly unknown[] = [];
  /** Where each line of the answer is in it. */
  #places = new Map<unknown, number>();
  /** How many lines of the answer went out. */
  #next = 0;
  /** How many other lines went out since the first line of the answer. */
  #passed = 0;

  /** The lines of an answer that go out now; `before` says how many other lines stood before each of them. */
  answer(lines: readonly OutLine[], before: readonly unknown[]): readonly OutLine[] {
    const earlier = this.end();
    [this.#lines, this.#before, this.#next, this.#passed] = [lines, before, 0, 0];
    this.#places = new Map(before.length === 0 ? [] : lines.map(({ value }, index) => [value.uuid, index]));
    return [...earlier, ...this.#due()];
  }

  /** A line that may have stood among those of the answer, with the ones that go out before and after it. */
  among(line: OutLine): readonly OutLine[] {
    const parent = this.#places.get(line.value.parentUuid) ?? -1;
    const earlier = this.#until(parent + 1);
    this.#passed++;
    return [...earlier, line, ...this.#due()];
  }

  /** What still waits: nothing more stands among the lines of the answer. */
  end(): readonly OutLine[] {
    return this.#until(this.#lines.length);
  }

  #due(): readonly OutLine[] {
    let end = this.#next;
    // What is no number, as a log from elsewhere may hold, waits for nothing.
    while (end < this.#lines.length && !(Number(this.#before[end]) > this.#passed)) end++;
    return this.#until(end);
  }

  #until(end: number): readonly OutLine[] {
    const from = this.#next;
    this.#next = Math.max(from, end);
    return this.#lines.slice(from, this.#next);
  }
}
