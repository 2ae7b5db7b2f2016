/** A column of a table. */
export interface Column {
  readonly title: string;
  /** Right-aligned, for numbers. */
  readonly right?: boolean;
}

/** Formats a table, titles first; each column is as wide as its widest cell. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const all = [columns.map(({ title }) => title), ...rows];
  const widths = columns.map((_, index) => Math.max(...all.map((row) => (row[index] ?? "").length)));
  return all.map((row) =>
    columns
      .map(({ right }, index) => {
        const [cell, width] = [row[index] ?? "", widths[index] ?? 0];
        return right === true ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd(),
  );
}
