import { USAGE_FIELDS, type Usage } from "../../session/usage.ts";

/** The usage minus what was already counted, never negative; undefined if nothing remains. */
export function subtractUsage(usage: Usage | undefined, counted: Usage | undefined): Usage | undefined {
  if (usage === undefined || counted === undefined) return usage;
  const beyond = Object.fromEntries(
    USAGE_FIELDS.flatMap((field) => {
      const more = Math.max(0, (usage[field] ?? 0) - (counted[field] ?? 0));
      return usage[field] === undefined ? [] : [[field, more]];
    }),
  );
  return Object.values(beyond).some((more) => more > 0) ? (beyond as unknown as Usage) : undefined;
}
