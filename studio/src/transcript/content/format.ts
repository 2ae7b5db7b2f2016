/** A time, with the day if it is not today. */
export function formatTime(timestamp: string, now: Date = new Date()): string {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return timestamp;
  const time = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  if (date.toDateString() === now.toDateString()) return time;
  const year = date.getFullYear() === now.getFullYear() ? {} : ({ year: "numeric" } as const);
  return `${date.toLocaleDateString(undefined, { day: "numeric", month: "short", ...year })}, ${time}`;
}
