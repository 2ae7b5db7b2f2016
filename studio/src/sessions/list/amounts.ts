const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const DATE = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric" });
const TIME = new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "medium" });
const COUNT = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const MONEY = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const SMALL_MONEY = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumSignificantDigits: 2 });

/** How long ago a time was, without seconds; the date after four weeks. */
export function ageOf(timestamp: string, nowMs: number): string {
  const time = Date.parse(timestamp);
  if (Number.isNaN(time)) return "";
  const age = nowMs - time;
  if (age < MINUTE_MS) return "just now";
  if (age < HOUR_MS) return `${Math.floor(age / MINUTE_MS)} min ago`;
  if (age < DAY_MS) return `${Math.floor(age / HOUR_MS)} h ago`;
  const days = Math.floor(age / DAY_MS);
  if (days === 1) return "yesterday";
  return days < 28 ? `${days} days ago` : DATE.format(time);
}

/** A time in full, in the local time zone. */
export function fullTime(timestamp: string): string {
  const time = Date.parse(timestamp);
  return Number.isNaN(time) ? timestamp : TIME.format(time);
}

/** A cost in US dollars; a dash if unknown. A cost that is computed from prices, not recorded, has a tilde. */
export function formatCost(cost: number | null, computed = false): string {
  if (cost === null || cost === 0) return "–";
  return `${computed ? "~" : ""}${formatMoney(cost)}`;
}

/** The explanation of a cost with a tilde. */
export const COMPUTED_COST = "Computed from the list price of the model, not recorded";

/** US dollars, with the digits that a small amount needs. */
export function formatMoney(cost: number): string {
  return cost > 0 && cost < 0.1 ? SMALL_MONEY.format(cost) : MONEY.format(cost);
}

/** A count in full. */
export function formatCount(count: number): string {
  return COUNT.format(count);
}

/** A count in short form. */
export function formatCompact(count: number): string {
  return COMPACT.format(count);
}

/** A duration in a suitable unit. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < HOUR_MS) return `${(ms / MINUTE_MS).toFixed(1)} min`;
  return ms < DAY_MS ? `${(ms / HOUR_MS).toFixed(1)} h` : `${(ms / DAY_MS).toFixed(1)} days`;
}
