import { USAGE_FIELDS, type Usage } from "../../session/usage.ts";

/** What was spent beyond what has been counted already; undefined for nothing. */
export function usageBeyond(usage: Usage | undefined, counted: Usage | undefined): Usage | undefined {
  if (usage === undefined || counted === undefined) return usage;
  const beyond = Object.fromEntries(
    USAGE_FIELDS.flatMap((field) => {
      const more = Math.max(0, (usage[field] ?? 0) - (counted[field] ?? 0));
      return usage[field] === undefined ? [] : [[field, more]];
    }),
  );
  return Object.values(beyond).some((more) => more > 0) ? (beyond as unknown as Usage) : undefined;
}
