/** Freezes a JSON value and all in it. */
export function freezeJson<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const item of Object.values(value)) freezeJson(item);
  return Object.freeze(value);
}
