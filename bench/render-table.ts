import { formatRatio } from "./format.ts";
import type { Row } from "./row.ts";

const HEADINGS = ["section", "what", "measured", "compared with", "ratio", "target", "result"];

/** The rows as one Markdown table. */
export function renderTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => [
    row.section,
    row.what,
    row.measured,
    row.against ?? "–",
    row.ratio === undefined ? "–" : formatRatio(row.ratio),
    row.target?.text ?? "–",
    row.target === undefined ? "–" : row.target.met ? "pass" : "FAIL",
  ]);
  return [HEADINGS, HEADINGS.map(() => "---"), ...lines]
    .map((cells) => `| ${cells.map(escaped).join(" | ")} |`)
    .join("\n");
}

function escaped(cell: string): string {
  return cell.replaceAll("|", "\\|");
}
