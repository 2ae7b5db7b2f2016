const DAY_MS = 24 * 60 * 60 * 1000;

/** The maximum number of days in a chart; older ones are only in the table. */
const DAYS_MAX = 3660;

/** A period; its days are in UTC, as the server counts them. */
export type Period =
  | { readonly kind: "last"; readonly days: number }
  | { readonly kind: "all" }
  /** Both days are included; an empty one leaves that end open. */
  | { readonly kind: "custom"; readonly first: string; readonly last: string };

/** The periods to choose from; `custom` lets the user enter the days. */
export const PERIODS: readonly { readonly value: string; readonly name: string }[] = [
  { value: "7", name: "Last 7 days" },
  { value: "30", name: "Last 30 days" },
  { value: "90", name: "Last 90 days" },
  { value: "365", name: "Last 12 months" },
  { value: "all", name: "All time" },
  { value: "custom", name: "Custom …" },
];

/** The times of a period, `from` inclusive and `to` exclusive. */
export function timesOf(period: Period, nowMs: number): { readonly from?: string; readonly to?: string } {
  if (period.kind === "all") return {};
  if (period.kind === "last") {
    const tomorrow = startOfDay(nowMs) + DAY_MS;
    return { from: isoOf(tomorrow - period.days * DAY_MS), to: isoOf(tomorrow) };
  }
  const [first, last] = [parseDay(period.first), parseDay(period.last)];
  return {
    ...(first === null ? {} : { from: isoOf(first) }),
    ...(last === null ? {} : { to: isoOf(last + DAY_MS) }),
  };
}

/** Every day of a period as `YYYY-MM-DD`, including days without activity. */
export function daysOf(period: Period, seen: readonly string[], nowMs: number): readonly string[] {
  const { from, to } = timesOf(period, nowMs);
  const known = seen.map(parseDay).filter((day) => day !== null);
  const first = from === undefined ? Math.min(...known) : Date.parse(from);
  const last = to === undefined ? Math.max(startOfDay(nowMs), ...known) : Date.parse(to) - DAY_MS;
  if (!Number.isFinite(first) || first > last) return [];
  const count = Math.min((last - first) / DAY_MS + 1, DAYS_MAX);
  return Array.from({ length: count }, (_, index) => isoOf(last - (count - 1 - index) * DAY_MS).slice(0, 10));
}

/** Why a custom period is invalid; null if it is valid. */
export function problemOf(period: Period): string | null {
  if (period.kind !== "custom") return null;
  const [first, last] = [parseDay(period.first), parseDay(period.last)];
  return first !== null && last !== null && first > last ? "The first day is after the last day." : null;
}

function parseDay(day: string): number | null {
  const time = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00.000Z`) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

function startOfDay(timeMs: number): number {
  return timeMs - (timeMs % DAY_MS);
}

function isoOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
