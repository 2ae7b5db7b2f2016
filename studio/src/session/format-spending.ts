const TOKENS = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** A number of tokens, short: `1.2K`. */
export function formatTokens(tokens: number): string {
  return TOKENS.format(tokens);
}

/** US dollars, with as many digits as a small amount needs. */
export function formatCost(cost: number): string {
  if (cost === 0) return "$0";
  if (cost < 0.0001) return "< $0.0001";
  return `$${cost < 1 ? cost.toFixed(4) : cost.toFixed(2)}`;
}

/** A time in the reader's own manner; what is no time is given back as it is. */
export function formatTime(timestamp: string): string {
  const time = new Date(timestamp);
  if (Number.isNaN(time.getTime())) return timestamp;
  return time.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
