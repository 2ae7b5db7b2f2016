/** A time in a suitable unit. */
export function formatMs(timeMs: number): string {
  if (Number.isNaN(timeMs)) return "unknown";
  if (timeMs < 1) return `${significant(timeMs * 1000)} µs`;
  return timeMs < 1000 ? `${significant(timeMs)} ms` : `${significant(timeMs / 1000)} s`;
}

/** A size in a suitable unit; a kilobyte has 1,000 bytes. */
export function formatBytes(bytes: number): string {
  if (Number.isNaN(bytes)) return "unknown";
  const size = Math.abs(bytes);
  if (size < 10_000) return `${formatCount(Math.round(bytes))} B`;
  return size < 1_000_000 ? `${significant(bytes / 1000)} kB` : `${significant(bytes / 1_000_000)} MB`;
}

/** A count with thousands separators. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** A ratio with the digits that are significant. */
export function formatRatio(ratio: number): string {
  if (!Number.isFinite(ratio)) return "–";
  if (ratio < 0.1) return String(Number(ratio.toPrecision(2)));
  return ratio < 10 ? ratio.toFixed(2) : formatCount(Math.round(ratio));
}

function significant(value: number): string {
  return Math.abs(value) < 100 ? String(Number(value.toPrecision(3))) : formatCount(Math.round(value));
}
