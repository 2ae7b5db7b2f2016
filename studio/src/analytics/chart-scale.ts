/** The values of the grid lines: round, from 0 to at least the largest value. */
export function ticksUpTo(largest: number, count: number): readonly number[] {
  if (!(largest > 0) || !Number.isFinite(largest)) return [0, 1];
  const step = roundStep(largest / count);
  const steps = Math.ceil(largest / step - 1e-9);
  // Multiplies instead of adding, which would accumulate rounding errors.
  return Array.from({ length: steps + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** The stride at which labels fit, counted from the last one. */
export function labelStride(count: number, width: number, labelWidth: number): number {
  return Math.max(1, Math.ceil((count * labelWidth) / Math.max(width, labelWidth)));
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((each) => each * power >= rough * (1 - 1e-9)) ?? 10;
  return factor * power;
}
