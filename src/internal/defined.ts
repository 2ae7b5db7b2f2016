/** The type in which fields that may be undefined are optional instead. */
type Defined<T> = { [Key in keyof T as undefined extends T[Key] ? never : Key]: T[Key] } & {
  [Key in keyof T as undefined extends T[Key] ? Key : never]?: Exclude<T[Key], undefined>;
};

/** Copies the fields that are not undefined. */
export function defined<T extends object>(fields: T): Defined<T> {
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) copy[key] = value;
  return copy as Defined<T>;
}
